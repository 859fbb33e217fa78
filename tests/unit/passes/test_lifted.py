"""Which loads go back under the condition that a compiler has lifted them above."""

from __future__ import annotations

import pytest

from consan.instrument.ptx import parse
from consan.instrument.rewriting.lifted import lowered

HEADER = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k()
{
 .shared .align 8 .b32 word;
 .reg .pred %p<8>;
 .reg .b32 %r<9>;
 .reg .b64 %rd<2>;
 mov.u32 %r0, %tid.x;
"""
CONDITION, LOAD, STORE = "setp.lt.u32 %p1, %r0, 32;", "ld.shared.u32 %r1, [word];", "st.shared.u32 [word], %r2;"
CHOICE = "selp.b32 %r2, %r1, 0, %p1;"
GUARDED = {
    "first choice": (f"{CONDITION} {LOAD} {CHOICE} {STORE}", "@%p1"),
    "second choice": (f"{CONDITION} {LOAD} selp.b32 %r2, 0, %r1, %p1; {STORE}", "@!%p1"),
    "condition computed behind the load": (f"{LOAD} {CONDITION} {CHOICE} {STORE}", f"{CONDITION} @%p1"),
    "through arithmetic": (f"{CONDITION} {LOAD} add.s32 %r3, %r1, %r1; selp.b32 %r2, %r3, 0, %p1; {STORE}", "@%p1"),
    "a choice within the choice": (
        f"{CONDITION} {LOAD} setp.eq.u32 %p2, %r0, 3; add.s32 %r3, %r1, 5; selp.b32 %r4, %r1, %r3, %p2; selp.b32 %r2, %r4, 0, %p1; {STORE}",
        "@%p1",
    ),
    "and": (f"{CONDITION} {LOAD} setp.eq.u32 %p2, %r1, 3; and.pred %p3, %p1, %p2; @%p3 {STORE}", "@%p1"),
    "or": (f"{CONDITION} {LOAD} setp.eq.u32 %p2, %r1, 3; or.pred %p3, %p2, %p1; @%p3 {STORE}", "@!%p1"),
}
LEFT = {
    "stored": f"{CONDITION} {LOAD} {CHOICE} {STORE} st.shared.u32 [word], %r1;",
    "two conditions": f"{CONDITION} setp.lt.u32 %p2, %r0, 9; {LOAD} {CHOICE} selp.b32 %r3, %r1, 0, %p2; {STORE} st.shared.u32 [word], %r3;",
    "both choices": f"{CONDITION} {LOAD} selp.b32 %r2, %r1, %r1, %p1; {STORE}",
    "condition made of the value": f"{LOAD} setp.lt.u32 %p1, %r1, 32; {CHOICE} {STORE}",
    "condition written twice": f"{CONDITION} {LOAD} {CHOICE} {STORE} setp.lt.u32 %p1, %r0, 9;",
    "condition written under a guard": f"setp.eq.u32 %p2, %r0, 1; {LOAD} @%p2 {CONDITION} {CHOICE} {STORE}",
    "another node": f"{CONDITION} {LOAD} next: {CHOICE} {STORE}",
    "a round before": f"{CONDITION} again: {CHOICE} {STORE} {LOAD} @%p1 bra again;",
    "computed address in global memory": f"{CONDITION} ld.global.u32 %r1, [%rd1]; {CHOICE} {STORE}",
    "strong": f"{CONDITION} ld.volatile.shared.u32 %r1, [word]; {CHOICE} {STORE}",
    "no use": f"{CONDITION} {LOAD}",
}


def _lowered(body: str) -> tuple[str, str]:
    text = f"{HEADER}{body.replace('; ', ';' + chr(10))}\nret;\n}}\n"
    return text, lowered(parse(text)).text


@pytest.mark.parametrize(("body", "guard"), GUARDED.values(), ids=list(GUARDED))
def test_a_load_gets_the_condition_of_its_value(body: str, guard: str) -> None:
    before, after = _lowered(body)
    assert f"\n{guard} {LOAD}\n" in after
    assert after.count("setp") == before.count("setp")
    assert [line.split()[-1] for line in after.splitlines() if LOAD in line or STORE in line] == ["[word];", "%r2;"]
    assert after.count("\n") == before.count("\n")  # no line moves


@pytest.mark.parametrize("body", LEFT.values(), ids=list(LEFT))
def test_other_loads_are_left_alone(body: str) -> None:
    before, after = _lowered(body)
    assert after == before


@pytest.mark.parametrize(
    ("load", "choice", "thrown"),
    [
        ("ld.shared.u32 %r1, [%r0+4];", CHOICE, ".reg .b32 %thrown_away0; @!%p1 ld.shared.u32 %thrown_away0, [%r0+4];"),
        ("ld.shared.u8 %r1, [%r0];", CHOICE, ".reg .b16 %thrown_away0; @!%p1 ld.shared.u8 %thrown_away0, [%r0];"),
        (
            "ld.shared.v2.u32 {%r1, %r3}, [%r0];",
            f"add.s32 %r4, %r1, %r3; {CHOICE.replace('%r1', '%r4')}",
            ".reg .b32 %thrown_away0, %thrown_away1; @!%p1 ld.shared.v2.u32 {%thrown_away0, %thrown_away1}, [%r0];",
        ),
        ("ld.shared.u32 %r1, [%r0];", "selp.b32 %r2, 0, %r1, %p1;", ".reg .b32 %thrown_away0; @%p1 ld.shared.u32 %thrown_away0, [%r0];"),
    ],
    ids=["scalar", "byte", "vector", "second choice"],
)
def test_a_computed_place_is_still_read_where_the_value_is_thrown_away(load: str, choice: str, thrown: str) -> None:
    before, after = _lowered(f"{CONDITION} {load} {choice} {STORE}")
    guard = "@%p1" if "@!%p1" in thrown else "@!%p1"
    assert f"\n{guard} {load} {{ {thrown} }}\n" in after
    assert after.count("\n") == before.count("\n")
