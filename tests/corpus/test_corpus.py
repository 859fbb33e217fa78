"""The corpus itself: what can be made here is PTX that assembles; what cannot has a reason."""

from __future__ import annotations

import re

import pytest
from sampled import one_in

import corpus
from consan.toolchain.assemble import assemble_cached

FAST = [entry for entry in corpus.available() if entry.producer == "nvrtc" and "cutlass" not in entry.name][::4]  # tests/real has all


def test_every_kernel_file_is_used() -> None:
    used = {name.split("/")[1] for name in (entry.name for entry in corpus.entries())}
    assert {path.stem for path in corpus.make.KERNELS.glob("*.cu")} <= used


def test_names_are_unique() -> None:
    names = [entry.name for entry in corpus.entries()]
    assert len(names) == len(set(names))


def test_missing_entries_have_a_reason() -> None:
    assert all(entry.skip for entry in corpus.missing())
    assert len(corpus.missing()) + len(corpus.available()) == len(corpus.entries())


@pytest.mark.parametrize("entry", one_in(2, FAST, lambda entry: entry.name))
def test_nvrtc_entry_assembles(entry: corpus.Entry) -> None:
    ptx = entry.make()
    assert re.search(rf"^\.target {entry.arch}\b", ptx, re.MULTILINE)
    assert assemble_cached(ptx, "sm_90a", name=entry.name).info


@pytest.mark.slow
@pytest.mark.parametrize("entry", [entry for entry in corpus.available() if entry not in FAST], ids=lambda entry: entry.name)
def test_other_entry_assembles(entry: corpus.Entry) -> None:
    assert assemble_cached(entry.make(), "sm_100a" if entry.arch.startswith("sm_100") else "sm_90a", name=entry.name).info
