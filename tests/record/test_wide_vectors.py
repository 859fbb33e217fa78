"""Loads and stores of 32 bytes with a generic address (sm_100): both engines follow them as two accesses of 16 bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import consan
from consan.instrument.called_hooks import instrument
from consan.instrument.record import record
from consan.session.modules.runtime import library_for
from consan.toolchain.assemble import assemble_cached

EIGHT, FOUR = ", ".join(f"%r{k}" for k in range(1, 9)), ", ".join(f"%d{k}" for k in range(11, 15))
MOVES = {
    "words": (f"ld.v8.b32 {{{EIGHT}}}, [%d4];", f"st.v8.b32 [%d5], {{{EIGHT}}};"),
    "pairs": (f"ld.v4.b64 {{{FOUR}}}, [%d4];", f"st.v4.b64 [%d5], {{{FOUR}}};"),
    "strong": (f"ld.acquire.gpu.v8.b32 {{{EIGHT}}}, [%d4];", f"st.release.gpu.v4.b64 [%d5], {{{FOUR}}};"),
}


def _ptx(move: str, step: int) -> str:
    load, store = MOVES[move]
    return f"""
.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 q) {{
.reg .b32 %r<12>; .reg .b64 %d<16>; .shared .align 32 .b8 s[64];
ld.param.u64 %d1, [p]; ld.param.u64 %d2, [q]; mov.u32 %r9, %tid.x;
mul.wide.u32 %d3, %r9, 32; add.u64 %d4, %d1, %d3; mul.wide.u32 %d6, %r9, {step}; add.u64 %d5, %d2, %d6;
mov.u64 %d11, %d3; mov.u64 %d12, 2; mov.u64 %d13, 3; mov.u64 %d14, 4;
bar.sync 0; {load} {store} ret;
}}"""


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("engine", ["record", "inline"])
def test_the_instrumented_text_assembles(move: str, engine: str) -> None:
    text = _ptx(move, 32)
    made = record(text).ptx if engine == "record" else instrument(text, library=library_for, name="k").ptx
    assert "k" in assemble_cached(made, "sm_100a").info


def _kinds(move: str, step: int, engine: str) -> tuple[str, list[Any], Any]:
    given, out = np.arange(512, dtype=np.uint32), np.zeros(512, np.uint32)
    report = consan.launch(consan.Kernel(_ptx(move, step), entry="k"), 1, 64, [given, out], device="cpu", engine=engine)
    assert not report.kernels[0].unmodelled
    return report.verdict, [(each.kind, each.hazard) for each in report.findings if each.severity == "error"], out


@pytest.mark.parametrize("move", ["words", "pairs"])
def test_a_race_and_none(move: str) -> None:
    verdict, kinds, out = _kinds(move, 32, "record")
    assert (verdict, kinds) == ("clean", [])
    np.testing.assert_array_equal(out, np.arange(512))
    assert _kinds(move, 0, "record")[:2] == ("violations", [("data-race", "WAW")])


def test_strong_stores_of_parts_do_not_race() -> None:
    assert _kinds("strong", 0, "record")[1] == []


def test_called_hooks_follow_them() -> None:
    """They do not look at global memory here, and nothing else is missing."""
    assert _kinds("words", 32, "inline")[1] == []


STORE = """
.version 9.0
.target sm_100a
.address_size 64
.visible .entry k() {{
.reg .b32 %r<12>; .reg .b64 %d<9>; .shared .align 32 .b8 s[64];
mov.u32 %r9, %tid.x; mov.u64 %d1, s; cvta.shared.u64 %d1, %d1;
st.v8.b32 [%d1], {{%r9, %r9, %r9, %r9, 1, 2, 3, {last}}}; ret;
}}"""


@pytest.mark.parametrize("engine", ["record", "inline"])
def test_a_generic_address_may_lie_in_shared_memory(engine: str) -> None:
    """Each half has a site of its own: here the values of both, or of the first alone, differ between two threads."""
    report = consan.launch(consan.Kernel(STORE.format(last="%r9"), entry="k"), 1, 2, [], device="cpu", engine=engine)
    assert {(each.kind, each.hazard, each.severity) for each in report.findings} == {("data-race", "WAW", "error")}
