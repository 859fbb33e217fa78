"""The answers of `consan prove` for small kernels, and those for random ones against enumeration."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

pytest.importorskip("z3", reason="the solver is in the extra `prove`")

from affine_programs import CopyMaker, Maker, Writer, races

from consan.instrument.ptx import parse
from consan.prove.assumptions import Assumption, names_of
from consan.prove.proof import MEET, KernelProof, prove

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n)
{
.reg .b32 %r<32>;
.reg .pred %p<16>;
.reg .b64 %rd<32>;
.shared .align 4 .b8 s[4096];
ld.param.u64 %rd1, [a];
ld.param.u64 %rd2, [b];
ld.param.u32 %r1, [n];
mov.u32 %r2, %tid.x;
mov.u32 %r3, %ctaid.x;
mov.u32 %r4, s;
mad.lo.s32 %r5, %r3, 64, %r2;
mul.wide.s32 %rd3, %r5, 4;
add.s64 %rd4, %rd1, %rd3;
mad.lo.s32 %r6, %r2, 4, %r4;
"""


def answer(body: str, *, assume: str = "", block: int = 64) -> KernelProof:
    """The answer for a kernel that writes 64 elements of `a` for each CTA."""
    module = parse(HEAD + body + "\nret;\n}\n", "k.ptx")
    function = module.functions[0]
    names = names_of(function.params, [], (0, 1))
    assumed = [Assumption(assume, names).formula] if assume else []
    return prove(function, module, (block, 1, 1), (0, 1), assumed, 2)


PROVEN = {
    "own elements": "st.global.u32 [%rd4], 1;",
    "own elements of a guard": "setp.ge.s32 %p1, %r5, %r1;\n@%p1 bra $E;\nst.global.u32 [%rd4], 1;\n$E:",
    "another array": "st.global.u32 [%rd4], 1;\nld.global.u32 %r7, [%rd2];",
    "a barrier between": "st.shared.u32 [%r6], 1;\nbar.sync 0;\nld.shared.u32 %r7, [s];",
    "a swizzle": "xor.b32 %r7, %r2, 5;\nmad.lo.s32 %r8, %r7, 4, %r4;\nst.shared.u32 [%r8], 1;",
    "strides of the block": "mov.u32 %r7, %r2;\n$L:\nmad.lo.s32 %r8, %r7, 4, %r4;\nst.shared.u32 [%r8], 1;\n"
    "add.s32 %r7, %r7, 64;\nsetp.lt.s32 %p1, %r7, 512;\n@%p1 bra $L;",
    "the counter of a grid": "atom.global.add.u32 %r7, [%rd2], 1;",
    "rounds with a barrier": "mov.u32 %r7, 0;\n$L:\nst.shared.u32 [%r6], %r7;\nbar.sync 0;\nld.shared.u32 %r8, [s+8];\nbar.sync 0;\n"
    "add.s32 %r7, %r7, 1;\nsetp.lt.s32 %p1, %r7, %r1;\n@%p1 bra $L;",
}
RACES = {
    "one element of all": "st.global.u32 [%rd2], 1;",
    "elements of two CTAs": "mad.lo.s32 %r7, %r3, 32, %r2;\n"
    "mul.wide.s32 %rd5, %r7, 4;\nadd.s64 %rd6, %rd1, %rd5;\nst.global.u32 [%rd6], 1;",
    "no barrier": "st.shared.u32 [%r6], 1;\nld.shared.u32 %r7, [s];",
    "a barrier of another number": "st.shared.u32 [%r6], 1;\nbar.sync 1;\nld.shared.u32 %r7, [s];",
    "a barrier of lanes": "st.shared.u32 [%r6], 1;\nbar.warp.sync 0xffffffff;\nld.shared.u32 %r7, [s];",
    "half of the bytes": "shl.b32 %r7, %r2, 1;\nadd.s32 %r8, %r4, %r7;\nst.shared.u16 [%r8], 1;\nld.shared.u32 %r10, [%r6];",
    "rounds of one thread beside those of another one": "mov.u32 %r7, 0;\n$L:\nadd.s32 %r8, %r2, %r7;\nmad.lo.s32 %r9, %r8, 4, %r4;\n"
    "st.shared.u32 [%r9], 1;\nadd.s32 %r7, %r7, 1;\nsetp.lt.s32 %p1, %r7, %r1;\n@%p1 bra $L;",
    "a load that sees no writes": "st.global.u32 [%rd4], 1;\nbar.sync 0;\nld.global.nc.u32 %r7, [%rd1];",
    "an atomic of the CTA": "atom.cta.global.add.u32 %r7, [%rd2], 1;",
    "an atomic beside a store": "atom.global.add.u32 %r7, [%rd2], 1;\nst.global.u32 [%rd2], 1;",
    "one strong word beside a strong vector": "mul.wide.s32 %rd5, %r2, 8;\nadd.s64 %rd6, %rd2, %rd5;\n"
    "st.relaxed.gpu.global.v2.u32 [%rd6], {%r2, %r2};\nld.relaxed.gpu.global.u64 %rd7, [%rd2];",
    "the next round": "mov.u32 %r7, 0;\n$L:\nst.shared.u32 [%r6], %r7;\nbar.sync 0;\nld.shared.u32 %r8, [s+8];\n"
    "add.s32 %r7, %r7, 1;\nsetp.lt.s32 %p1, %r7, %r1;\n@%p1 bra $L;",
    "a stride of half a block": "mov.u32 %r7, %r2;\n$L:\nmad.lo.s32 %r8, %r7, 4, %r4;\nst.shared.u32 [%r8], 1;\n"
    "add.s32 %r7, %r7, 32;\nsetp.lt.s32 %p1, %r7, 512;\n@%p1 bra $L;",
    "an index that is loaded": "ld.global.u32 %r7, [%rd4];\nand.b32 %r7, %r7, 1023;\nmad.lo.s32 %r8, %r7, 4, %r4;\nst.shared.u32 [%r8], 1;",
}
UNKNOWN = {
    "a product that wraps": "mul.lo.s32 %r7, %r5, -1640531535;\nshr.u32 %r8, %r7, 24;\n"
    "mad.lo.s32 %r8, %r8, 4, %r4;\nst.shared.u32 [%r8], 1;",
    "a barrier of some threads": "setp.lt.s32 %p1, %r2, 32;\n@%p1 bra $L;\nbar.sync 0;\n$L:",
    "a barrier behind some threads' return": "setp.lt.s32 %p1, %r2, 32;\n@%p1 ret;\nbar.sync 0;",
    "a barrier in rounds of a thread": "mov.u32 %r7, %r2;\n$L:\nbar.sync 0;\nadd.s32 %r7, %r7, 1;\nsetp.lt.s32 %p1, %r7, 99;\n@%p1 bra $L;",
    "a copy": "cp.async.ca.shared.global [%r6], [%rd4], 4;",
    "an arrival": "bar.arrive 0, 64;",
    "a pointer from memory": "ld.global.u64 %rd5, [%rd4];\nst.global.u32 [%rd5], 1;",
    "an array that is left": "mad.lo.s32 %r7, %r1, 4, %r6;\n.shared .align 4 .b8 t[64];\nst.shared.u32 [%r7], 1;\nld.shared.u32 %r8, [t];",
}


@pytest.mark.parametrize("body", PROVEN.values(), ids=PROVEN)
def test_what_is_free_of_races_is_proven(body: str) -> None:
    found = answer(body)
    assert (found.answer, found.reasons) == ("proven", [])


@pytest.mark.parametrize("body", RACES.values(), ids=RACES)
def test_what_may_race_is_not_proven(body: str) -> None:
    found = answer(body)
    assert found.answer == "unknown"
    assert MEET in {each.why for each in found.reasons}
    assert found.conflicts


@pytest.mark.parametrize("body", UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_not_modelled_is_not_proven(body: str) -> None:
    assert answer(body).answer == "unknown"


def test_an_assumption_of_the_user_makes_a_proof() -> None:
    body = "mad.lo.s32 %r7, %r2, %r1, %r3;\nmul.wide.s32 %rd5, %r7, 4;\nadd.s64 %rd6, %rd1, %rd5;\nst.global.u32 [%rd6], 1;"
    assert answer(body).answer == "unknown"
    assert answer(body, assume="gridDim.x <= n").answer == "proven"


def test_assumptions_that_exclude_each_other_prove_nothing() -> None:
    found = answer("st.global.u32 [%rd2], 1;", assume="n < 0 and n > 0")
    assert found.answer == "unknown"


def test_an_overflow_that_is_assumed_away_is_named() -> None:
    found = answer(PROVEN["own elements"])
    assert found.overflows == [HEAD[: HEAD.index("mul.wide")].count("\n") + 1]


def wrong(seeds: Iterable[int], maker: type[Maker] = Maker, block: int = 4) -> tuple[list[int], int]:
    """Random programs that are proven and have a race in a small launch; and how many are proven."""
    found, proven = [], 0
    for seed in seeds:
        body = maker(seed).program()
        module = parse(Writer().text(body, block), f"{seed}.ptx")
        if prove(module.functions[0], module, (block, 1, 1), (0,), [], 5).answer == "proven":
            proven += 1
            found += [seed] if any(races(body, block, ctas, n) for ctas in range(1, 5) for n in range(7)) else []
    return found, proven


def test_no_random_program_with_a_race_is_proven() -> None:
    found, proven = wrong((*range(4, 14), 1533, 5021, 5185))  # the last ones: iterations that were shared, and a first one left out
    assert found == []
    assert proven


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_no_random_program_of_many_with_a_race_is_proven() -> None:
    found, proven = wrong(range(20, 5020))
    assert found == []
    assert proven > 500
