"""Instrumented modules on disk: what comes back is what was stored, and a second process need not rewrite a module again."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pipeline_kernels as kernels
import pytest

from consan.instrument import Instrumented
from consan.instrument.called_hooks import instrument
from consan.instrument.ptx import parse
from consan.instrument.runtime import Variant
from consan.instrument.stored import dump, fingerprint, restore
from consan.session.modules import hooks
from consan.session.modules.runtime import library_for
from consan.session.planning.options import SessionOptions
from consan.session.session import Session
from consan.toolchain.nvrtc import compile_ptx

RING = Path(__file__).parents[1] / "kernels"
# Those behind the first need a runtime of their own each, which takes seconds to compile.
MORE = ("clean/wgmma_tma_ring.cu", "twins/wgmma_flush_flag.cu", "twins/named_barrier_shared_id.cu")
FILES = ("twins/cp_async_no_wait.cu", *(pytest.param(name, marks=pytest.mark.slow) for name in MORE))


def _made(name: str, **base: bool) -> tuple[str, Instrumented]:
    path = RING / name
    ptx = compile_ptx(path.read_text(), name=str(path), arch="sm_90a", include_dirs=[path.parents[1]], defines={"RACY": "1"}).ptx
    return ptx, instrument(ptx, library=library_for, base=Variant(**base), name=name)


@pytest.mark.parametrize("name", FILES)
def test_what_comes_back_is_what_was_stored(name: str) -> None:
    ptx, done = _made(name)
    again = restore(dump(done), lambda: parse(ptx, name))
    for field in dataclasses.fields(Instrumented):
        if field.name not in ("places", "lines"):
            assert getattr(again, field.name) == getattr(done, field.name), field.name
    assert tuple(again.lines) == tuple(done.lines)
    assert dict(again.places) == dict(done.places)
    assert again.original(done.lines.index(max(done.lines)) + 1) == done.original(done.lines.index(max(done.lines)) + 1)


def test_the_code_is_part_of_the_key() -> None:
    assert len(fingerprint()) == 64
    assert fingerprint() == fingerprint()


def test_a_second_session_rewrites_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONSAN_CACHE_DIR", str(tmp_path / "cache"))
    first = Session(SessionOptions(device="cpu", shadow_memory=1 << 24), private=True).instrument(kernels.MODULE)
    monkeypatch.setattr(hooks, "instrument", None)  # not called again
    second = Session(SessionOptions(device="cpu", shadow_memory=1 << 24), private=True).instrument(kernels.MODULE)
    assert second.instrumented.ptx == first.instrumented.ptx
    assert second.instrumented.sites == first.instrumented.sites


def test_a_damaged_entry_is_made_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONSAN_CACHE_DIR", str(tmp_path / "cache"))
    first = Session(SessionOptions(device="cpu", shadow_memory=1 << 24), private=True).instrument(kernels.MODULE)
    for entry in (tmp_path / "cache").rglob("*"):
        if entry.is_file():
            entry.write_bytes(entry.read_bytes()[:-7])
    second = Session(SessionOptions(device="cpu", shadow_memory=1 << 24), private=True).instrument(kernels.MODULE)
    assert second.instrumented.ptx == first.instrumented.ptx
