"""Recorded modules on disk: what comes back is what was stored, and a second process need not rewrite a module again."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any

import pytest

from consan.instrument.ptx import parse
from consan.instrument.record import Recorded, Refusal, record
from consan.instrument.record.stored import dump_recorded, dump_refusal, restore_recorded
from consan.options import RECORD
from consan.session import recording
from consan.session.session import Session
from consan.toolchain.cache import Cache
from consan.toolchain.nvrtc import compile_ptx

KERNELS = Path(__file__).parents[1] / "kernels"
FILES = ("clean/wgmma_tma_ring.cu", "twins/cp_async_no_wait.cu")
LAZY = ("expand", "footprint", "loaded", "templates", "lines")


@functools.cache
def _ptx(name: str) -> str:
    path = KERNELS / name
    return compile_ptx(path.read_text(), name=str(path), arch="sm_90a", include_dirs=[path.parents[1]], defines={"RACY": "1"}).ptx


@pytest.mark.parametrize("how", [{"leaves": True, "outer": False}, {"leaves": False, "outer": True}], ids=str)
@pytest.mark.parametrize("name", FILES)
def test_what_comes_back_is_what_was_stored(name: str, how: dict[str, bool]) -> None:
    ptx = _ptx(name)
    made = recording.Recording(RECORD).rewritten(ptx, lambda: parse(ptx), **how)
    assert not isinstance(made, str)
    module, done = made
    again, found = restore_recorded(dump_recorded(module, done), lambda: parse(ptx), lambda: record(ptx, **how))
    for field in dataclasses.fields(Recorded):
        if field.name not in LAZY:
            assert getattr(found, field.name) == getattr(done, field.name), field.name
    assert (list(found.templates), list(found.lines)) == (list(done.templates), list(done.lines))
    assert all((one == other).all() for one, other in zip(found.tables, done.tables, strict=True))
    assert (again.ptx, again.sites, again.communicates) == (module.ptx, module.sites, module.communicates)
    for text in ("expand", "footprint"):
        one, other = getattr(found, text), getattr(done, text)
        assert (one is None) == (other is None)
        assert one is None or getattr(one(), "ptx", None) == getattr(other(), "ptx", None)


def test_why_a_module_is_not_recorded_comes_back() -> None:
    with pytest.raises(Refusal, match="it has something"):
        restore_recorded(dump_refusal("it has something"), lambda: pytest.fail("read"), lambda: pytest.fail("made"))


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(recording, "CACHE", Cache(tmp_path / "cache"))
    monkeypatch.setattr(recording, "REMEMBERS", True)
    return tmp_path / "cache"


def _session() -> Session:
    return Session(device="cpu", shadow_memory=1 << 24, private=True)


def _launched(session: Any, ptx: str) -> Any:
    prepared = session.prepare(ptx)
    out = session.backend.alloc(1 << 16)
    session.launch(prepared, prepared.entries[0], (2, 1, 1), (96, 1, 1), [out.to_bytes(8, "little"), (1).to_bytes(4, "little")])
    return session.report()


RACY = """
extern "C" __global__ void waits(unsigned* out, int number) {
    __shared__ unsigned values[96];
    values[threadIdx.x] = number;
    out[blockIdx.x * blockDim.x + threadIdx.x] = values[95 - threadIdx.x];
}
"""


def test_a_second_session_rewrites_nothing_and_finds_the_same(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ptx = compile_ptx(RACY, arch="sm_90a").ptx
    first = _launched(_session(), ptx)
    monkeypatch.setattr(recording, "record", lambda *_, **__: pytest.fail("it is rewritten again"))
    second = _launched(_session(), ptx)
    assert [(each.kind, each.count, each.accesses) for each in first.findings] == [
        (each.kind, each.count, each.accesses) for each in second.findings
    ]
    assert first.verdict == second.verdict == "violations"


def test_a_refusal_is_kept_too(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: Any, **__: Any) -> Recorded:
        raise Refusal("it has something")

    ptx = compile_ptx(RACY, arch="sm_90a").ptx
    with monkeypatch.context() as inside:
        inside.setattr(recording, "record", refuses)
        assert _session().instrument(ptx, recorded=True).refusal == "it has something"
    monkeypatch.setattr(recording, "record", lambda *_, **__: pytest.fail("it is rewritten again"))
    assert _session().instrument(ptx, recorded=True).refusal == "it has something"


def test_each_way_to_record_has_a_text_of_its_own(cache: Path) -> None:
    ptx = compile_ptx(RACY, arch="sm_90a").ptx
    ways = [{"policy": policy, "global_memory": outer} for policy in ("default", "isa") for outer in ("on", "off")]
    for _ in range(2):
        texts = [Session(device="cpu", private=True, shadow_memory=1 << 24, **way).instrument(ptx, recorded=True).recorded for way in ways]
        assert [(done.isa, done.mode.name) for done in texts] == [(False, "ALONE"), (False, "OFF"), (True, "ALONE"), (True, "OFF")]


def test_a_damaged_entry_is_made_again(cache: Path) -> None:
    ptx = compile_ptx(RACY, arch="sm_90a").ptx
    first = _session().instrument(ptx, recorded=True)
    for entry in cache.rglob("*"):
        if entry.is_file():
            entry.write_bytes(entry.read_bytes()[:-7])
    assert _session().instrument(ptx, recorded=True).instrumented.ptx == first.instrumented.ptx
