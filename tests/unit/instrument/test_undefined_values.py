"""Whether a value that a shuffle takes from a lane that is not there is used for certain."""

from __future__ import annotations

import pytest

from consan.instrument.between import TextRelations
from consan.instrument.between.undefined_values import source_lane
from consan.instrument.ptx import parse
from consan.instrument.relations import UndefinedUse, Warp

HEAD = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 n)
{
    .reg .pred %p<9>;
    .reg .b32 %r<19>;
    .reg .b64 %rd<9>;
    .shared .align 4 .b32 s[64];
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r8, [n];
    mov.u32 %r1, %tid.x;
    and.b32 %r7, %r1, 31;
    setp.lt.u32 %p8, %r1, %r8;
    ld.global.u32 %r2, [%rd1];
"""
SHUFFLE = "shfl.sync.down.b32 %r3, %r2, 16, 31, -1;"
STORE = "st.global.u32 [%rd1], %r3;"
FIRST = "setp.ne.u32 %p1, %r7, 0;"
# The instructions, and what is used: "store", "branch", "address"; empty if nothing is for certain. 18 lanes came, the others have exited.
CASES = {
    "as it is": ([SHUFFLE, STORE], "store"),
    "added": ([SHUFFLE, "add.u32 %r3, %r3, %r1;", STORE], "store"),
    "the smaller one": ([SHUFFLE, "min.u32 %r3, %r1, %r3;", STORE], "store"),
    "an addend": ([SHUFFLE, "mad.lo.u32 %r3, %r1, %r2, %r3;", STORE], "store"),
    "a factor": ([SHUFFLE, "mad.lo.u32 %r3, %r3, %r2, %r1;", STORE], ""),
    "times a number": ([SHUFFLE, "mul.lo.u32 %r3, %r3, 3;", STORE], "store"),
    "times zero": ([SHUFFLE, "mul.lo.u32 %r3, %r3, 0;", STORE], ""),
    "a product": ([SHUFFLE, "mul.lo.u32 %r3, %r3, %r1;", STORE], ""),
    "masked": ([SHUFFLE, "and.b32 %r3, %r3, %r1;", STORE], ""),
    "chosen perhaps": ([SHUFFLE, "selp.u32 %r3, %r3, %r1, %p8;", STORE], ""),
    "chosen": ([FIRST, SHUFFLE, "selp.u32 %r3, %r1, %r3, %p1;", STORE], ""),  # by lane 0, whose source is there
    "chosen in lane 17": (
        ["setp.eq.u32 %p1, %r7, 17;", "shfl.sync.idx.b32 %r3, %r2, 20, 31, -1;", "selp.u32 %r3, %r3, %r1, %p1;", STORE],
        "store",
    ),
    "guarded perhaps": ([SHUFFLE, "mov.u32 %r4, 0;", "@%p8 mov.u32 %r4, %r3;", "st.global.u32 [%rd1], %r4;"], ""),
    "guarded in lane 0": ([FIRST, SHUFFLE, "mov.u32 %r4, 0;", "@!%p1 mov.u32 %r4, %r3;", "st.global.u32 [%rd1], %r4;"], ""),
    "overwritten": ([SHUFFLE, "mov.u32 %r3, 0;", STORE], ""),
    "perhaps overwritten": ([SHUFFLE, "@%p8 bra $a;", "mov.u32 %r3, 0;", "$a:", STORE], ""),
    "perhaps changed": ([SHUFFLE, "@%p8 bra $a;", "add.u32 %r3, %r3, 1;", "$a:", STORE], "store"),
    "stored by lane 0": ([FIRST, SHUFFLE, "@%p1 bra $a;", STORE, "$a:"], ""),
    "stored by lane 0, from lane 8": ([FIRST, SHUFFLE, "shfl.sync.down.b32 %r3, %r3, 8, 31, -1;", "@%p1 bra $a;", STORE, "$a:"], "store"),
    "stored perhaps": ([SHUFFLE, "@%p8 bra $a;", STORE, "$a:"], ""),
    "stored if it does not leave": ([SHUFFLE, "@%p8 exit;", STORE], ""),
    "out of range": (["shfl.sync.down.b32 %r3, %r2, 16, 17, -1;", STORE], ""),
    "from below": (["shfl.sync.up.b32 %r3, %r2, 16, 0, -1;", STORE], ""),
    "from a lane by its number": (["shfl.sync.idx.b32 %r3, %r2, 20, 31, -1;", STORE], "store"),
    "from a lane that is not known": (["shfl.sync.idx.b32 %r3, %r2, %r8, 31, -1;", STORE], ""),
    "a branch": ([SHUFFLE, "setp.eq.u32 %p2, %r3, 0;", "@%p2 bra $a;", "st.global.u32 [%rd1], %r1;", "$a:"], "branch"),
    "one of two conditions": ([SHUFFLE, "setp.eq.and.u32 %p2, %r3, 0, %p8;", "@%p2 bra $a;", STORE.replace("%r3", "%r1"), "$a:"], ""),
    "an address": ([SHUFFLE, "cvt.u64.u32 %rd2, %r3;", "add.u64 %rd2, %rd2, %rd1;", "ld.global.u32 %r4, [%rd2];"], "address"),
    "an atomic operation": ([SHUFFLE, "atom.global.add.u32 %r4, [%rd1], %r3;"], "store"),
    "shared memory": ([SHUFFLE, "st.shared.u32 [s], %r3;"], ""),
    "half of a double": ([SHUFFLE, "mov.b64 %rd2, {%r3, %r1};", "st.global.u64 [%rd1], %rd2;"], ""),
    "a double": ([SHUFFLE, "mov.b64 %rd2, {%r3, %r3};", "st.global.u64 [%rd1], %rd2;"], "store"),
    "whether it is in range": (["shfl.sync.down.b32 %r3|%p2, %r2, 16, 31, -1;", "@%p2 bra $a;", "st.global.u32 [%rd1], %r1;", "$a:"], ""),
    "a loop": (["$l:", SHUFFLE, "add.u32 %r2, %r2, %r3;", "@%p8 bra $l;", "st.global.u32 [%rd1], %r2;"], "store"),
    "a vote": ([SHUFFLE, "setp.eq.u32 %p2, %r3, 0;", "vote.sync.any.pred %p3, %p2, -1;", "selp.u32 %r3, 1, 0, %p3;", STORE], ""),
}


def use(code: list[str], came: int = 0x3FFFF) -> UndefinedUse | None:
    text = HEAD + "\n".join([*code, "ret;", "}"])
    relations = TextRelations(lambda: parse(text))
    line = next(number for number, each in enumerate(text.splitlines(), 1) if "shfl" in each)
    return relations.undefined_use("k", line, Warp(came, ~came & 0xFFFFFFFF, tuple((lane, 0, 0) for lane in range(32))))


@pytest.mark.parametrize("name", CASES)
def test_use(name: str) -> None:
    code, end = CASES[name]
    found = use(code)
    assert (found.end if found is not None else "") == end


def test_lanes_of_a_use() -> None:
    found = use(CASES["stored by lane 0, from lane 8"][0])
    assert found is not None
    assert (found.lane, found.source, found.by, found.used.opcode) == (2, 18, 0, "st.global.u32")


def test_nothing_is_undefined_where_all_lanes_came() -> None:
    assert use([SHUFFLE, STORE], 0xFFFFFFFF) is None


def test_shuffles_that_all_threads_come_to() -> None:
    text = HEAD + "\n".join([SHUFFLE, "@%p8 bra $a;", SHUFFLE, "$a:", f"@%p8 {SHUFFLE}", "ret;", "}"])
    lines = [number for number, each in enumerate(text.splitlines(), 1) if "shfl" in each]
    assert TextRelations(lambda: parse(text)).certain_shuffles("k") == (lines[0],)


@pytest.mark.parametrize(
    ("mode", "lane", "offset", "limits", "source"),
    [
        ("up", 5, 2, 0, 3), ("up", 1, 2, 0, 1), ("up", 9, 2, 8 | 24 << 8, 9), ("down", 5, 2, 31, 7), ("down", 30, 2, 31, 30),
        ("down", 6, 2, 7 | 24 << 8, 6), ("bfly", 5, 3, 31, 6), ("bfly", 5, 16, 7 | 24 << 8, 5), ("idx", 13, 1, 7 | 24 << 8, 9),
        ("idx", 3, 20, 31, 20),
    ],
)  # fmt: skip
def test_source_lane(mode: str, lane: int, offset: int, limits: int, source: int) -> None:
    assert source_lane(mode, lane, offset, limits) == source
