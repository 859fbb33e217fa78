"""Stores of a larger or smaller value than the one that was loaded: a maximum or a minimum, which one atomic operation makes."""

from __future__ import annotations

import pytest

from consan.instrument.between import data
from consan.instrument.between.data import DataFlow
from consan.instrument.ptx import parse
from consan.instrument.rewriting.context import place_of

HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{
.reg .pred %p<4>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<9>;
ld.param.u64 %rd1, [p];
mov.u32 %r1, %tid.x;
cvt.rn.f32.u32 %f1, %r1;
"""
LOAD, STORE, BRANCH, END = "ld.global.u32 %r2, [%rd1];", "st.global.u32 [%rd1], %r1;", "@%p1 bra $end;", "$end: ret;"
CASES = {
    "a maximum": ([LOAD, "setp.le.s32 %p1, %r1, %r2;", BRANCH, STORE, END], True),
    "a minimum, the loaded value first": ([LOAD, "setp.lt.u32 %p1, %r2, %r1;", BRANCH, STORE, END], True),
    "a guard": ([LOAD, "setp.gt.u32 %p1, %r1, %r2;", f"@%p1 {STORE}", END], True),
    "for equality": ([LOAD, "setp.ne.u32 %p1, %r1, %r2;", BRANCH, STORE, END], False),
    "of another number": ([LOAD, "setp.le.u32 %p1, %r2, 7;", BRANCH, STORE, END], False),
    "with bytes beside it": (["ld.global.u32 %r2, [%rd1+4];", "setp.le.u32 %p1, %r1, %r2;", BRANCH, STORE, END], False),
    "that decides about nothing": ([LOAD, "setp.le.u32 %p1, %r1, %r2;", STORE, END], False),
    "of numbers with a point": (
        ["ld.global.f32 %f2, [%rd1];", "setp.le.f32 %p1, %f1, %f2;", BRANCH, "st.global.f32 [%rd1], %f1;", END],
        False,
    ),
}


def _is_extreme(lines: list[str]) -> bool:
    module = parse("\n".join((HEAD, *lines, "}")))
    (function,) = module.functions
    (store,) = (place_of(module, each).ptx_line for each in function.instructions() if each.parts[0] == "st")
    flow = DataFlow(module, function)
    assert bool(flow.updates(store)) is (flow.compared(store) is not None)
    return flow.compared(store) is not None


@pytest.mark.parametrize("name", CASES)
def test_a_comparison(name: str) -> None:
    lines, extreme = CASES[name]
    assert _is_extreme(lines) is extreme


@pytest.mark.parametrize(
    ("changed", "name"),
    [("finds_larger", "for equality"), ("finds_larger", "of numbers with a point"), ("_decides", "that decides about nothing")],
)
def test_a_rule_that_is_left_out(changed: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if changed == "_decides":
        monkeypatch.setattr(DataFlow, changed, lambda *_: True)
    else:
        monkeypatch.setattr(data, changed, lambda instruction: instruction.parts[0] == "setp")
    assert _is_extreme(CASES[name][0])
