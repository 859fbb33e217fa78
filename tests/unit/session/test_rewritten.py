"""Recorded modules on disk: they are what the pass would make, and nothing is read or rewritten again."""

from __future__ import annotations

import functools
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import consan
from consan.instrument.ptx import parse
from consan.instrument.record import Recorded
from consan.session.modules import rewritten
from consan.session.modules.rewritten import Rewriting

SOURCE = """extern "C" __global__ void reverse(int* out) {
    __shared__ int tile[128];
    for (int i = 0; i < out[0]; ++i) {
        tile[threadIdx.x] = i; __syncthreads(); out[i] = tile[blockDim.x - 1 - threadIdx.x]; __syncthreads();
    }
}"""
CALLABLE = ("expansion",)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSAN_CACHE_DIR", str(tmp_path))


@functools.cache
def _ptx() -> str:
    return consan.Kernel(SOURCE).ptx


def _rewriting(ptx: str = "", *, leaves: bool = True, isa: bool = False, keeps: bool = True) -> Rewriting:
    ptx = ptx or _ptx()
    return Rewriting(ptx, lambda: parse(ptx), False, isa, leaves, keeps)


def _values(recorded: Recorded | None) -> list[Any]:
    assert recorded is not None
    return [getattr(recorded, field.name) for field in fields(recorded) if field.name not in CALLABLE]


def test_the_next_process_has_the_same_texts_and_records_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    first, waits = _rewriting().done()
    assert first.expansion is not None
    wanted = [_values(first), _values(first.expansion.text)]
    monkeypatch.setattr(rewritten, "record", None)
    again = _rewriting()
    second, waits_again = again.done()
    assert second.expansion is not None
    assert not again.made
    assert ([_values(second), _values(second.expansion.text)], waits_again) == (wanted, waits)


def test_a_text_for_the_host_that_nobody_has_asked_for_is_made_when_it_is_wanted() -> None:
    wanted = _rewriting(keeps=False).done()[0]
    _rewriting().done()
    restored = _rewriting().done()[0]
    assert wanted.expansion is not None
    assert restored.expansion is not None
    assert _values(restored.expansion.text) == _values(wanted.expansion.text)


def test_other_ways_to_record_are_other_files() -> None:
    _rewriting().done()
    for other in (_rewriting(leaves=False), _rewriting(isa=True), _rewriting(_ptx() + "\n")):
        other.done()
        assert other.made


def test_a_refusal_is_kept_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = _ptx().replace("bar.sync", "bar.unheard_of")
    first, _ = _rewriting(refused).done()
    monkeypatch.setattr(rewritten, "record", None)
    second, _ = _rewriting(refused).done()
    assert second.refused == first.refused == {"reverse": "bar.unheard_of is not modelled"}


def test_tests_keep_nothing() -> None:
    for _ in range(2):
        rewriting = _rewriting(keeps=False)
        rewriting.done()
        assert rewriting.made
