"""Sums for which the lanes of a warp exchange their values in pairs, in the text of a kernel."""

from __future__ import annotations

import pytest

from consan.instrument.between import lane_sums
from consan.instrument.between.data import DataFlow
from consan.instrument.between.lane_sums import LaneSums
from consan.instrument.ptx import parse
from consan.instrument.rewriting.context import place_of

HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{
.reg .pred %p<4>; .reg .b32 %r<20>; .reg .f32 %f<20>; .reg .b64 %rd<9>; .reg .b16 %h<3>;
ld.param.u64 %rd1, [p];
mov.u32 %r1, %tid.x;
cvt.rn.f32.u32 %f1, %r1;
mul.f32 %f2, %f1, %f1;
mov.b32 %r2, %f2;
setp.lt.u32 %p1, %r1, 3;
"""
STORE = "st.global.f32 [%rd1], %f9; ret;"
FIRST = ["shfl.sync.bfly.b32 %r3, %r2, 16, 31, -1;", "mov.b32 %f3, %r3;", "fma.rn.f32 %f4, %f1, %f1, %f3;", "mov.b32 %r4, %f4;"]
SECOND = ["mov.u32 %r5, 8;", "shfl.sync.bfly.b32 %r6|%p2, %r4, %r5, 31, -1;", "mov.b32 %f5, %r6;", "add.f32 %f9, %f4, %f5;"]


def one(text: str) -> list[str]:
    """One step, by this text."""
    return [text, "mov.b32 %f3, %r3;", "add.f32 %f9, %f2, %f3;"]


CASES = {
    "two steps, a product joined to the first": ([*FIRST, *SECOND], 24),
    "one step": (one("shfl.sync.bfly.b32 %r3, %r2, 4, 31, -1;"), 4),
    "the exchanged value first": ([*one("shfl.sync.bfly.b32 %r3, %r2, 4, 31, -1;")[:2], "add.f32 %f9, %f3, %f2;"], 4),
    "values of higher lanes": (one("shfl.sync.down.b32 %r3, %r2, 4, 31, -1;"), 0),
    "a part of the lanes": (one("shfl.sync.bfly.b32 %r3, %r2, 4, 31, 15;"), 0),
    "segments": (one("shfl.sync.bfly.b32 %r3, %r2, 4, 7199, -1;"), 0),
    "another value of the other lane": (["mov.b32 %r7, %f1;", *one("shfl.sync.bfly.b32 %r3, %r7, 4, 31, -1;")], 0),
    "under a condition": (["mov.f32 %f9, %f2;", *one("shfl.sync.bfly.b32 %r3, %r2, 4, 31, -1;")[:2], "@%p1 add.f32 %f9, %f2, %f3;"], 0),
    "a difference": ([*one("shfl.sync.bfly.b32 %r3, %r2, 4, 31, -1;")[:2], "sub.f32 %f9, %f2, %f3;"], 0),
    "another product": ([*FIRST[:2], "fma.rn.f32 %f9, %f1, %f2, %f3;"], 0),
}
STORES = {
    "a vector": ("st.shared.v2.f32 [%r1], {%f9, %f4};", [*FIRST, *SECOND], 16),
    "a vector with another value": ("st.shared.v2.f32 [%r1], {%f9, %f1};", [*FIRST, *SECOND], 0),
    "16 bits": ("cvt.rn.bf16.f32 %h1, %f9; st.shared.b16 [%r1], %h1;", [*FIRST, *SECOND], 24),
    "an integer": ("cvt.rzi.s32.f32 %r9, %f9; st.shared.b32 [%r1], %r9;", [*FIRST, *SECOND], 0),
}


@pytest.mark.parametrize("name", STORES)
def test_a_store_of_sums(name: str) -> None:
    store, lines, lanes = STORES[name]
    assert _lanes(lines, f"{store} ret;") == lanes


def _lanes(lines: list[str], end: str = STORE) -> int:
    module = parse("\n".join((HEAD, *lines, end, "}")))
    (function,) = module.functions
    (store,) = (place_of(module, each).ptx_line for each in function.instructions() if each.parts[0] == "st")
    return DataFlow(module, function).summed_lanes(store)


@pytest.mark.parametrize("name", CASES)
def test_a_sum(name: str) -> None:
    lines, lanes = CASES[name]
    assert _lanes(lines) == lanes


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ("shuffles", "values of higher lanes"),
        ("sums_reals", "a difference"),
        ("_is_value", "another value of the other lane"),
        ("_is_value", "another product"),
    ],
)
def test_a_rule_that_is_left_out(changed: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if changed == "_is_value":
        monkeypatch.setattr(LaneSums, changed, lambda *_: True)
    else:
        monkeypatch.setattr(lane_sums, changed, lambda instruction: "bfly" if changed == "shuffles" else instruction.parts[0] == "sub")
    assert _lanes(CASES[name][0])
