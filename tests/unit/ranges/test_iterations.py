"""Iterations of a loop that are gone through at once, against the same loop iteration by iteration: all accesses of all threads."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

from consan.instrument.ptx import parse
from consan.ranges import LaunchExtents, NotProven, Slice, iterations, walk
from consan.ranges.iterations import Growth, KnownRegisters
from consan.ranges.walk import accesses_of

SHAPE = LaunchExtents((3, 1, 1), (4, 1, 1))
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n) {\n"
HEAD += ".reg .b32 %r<40>; .reg .b64 %d<20>; .reg .pred %p<9>;\n"
HEAD += "ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; ld.param.u32 %r1, [n];\n"
HEAD += "mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; mad.lo.s32 %r4, %r3, 4, %r2; mov.u32 %r5, {start}; mov.u32 %r6, 0; mov.u32 %r7, %r4;\n"
# Parts of an iteration: %r5 is the counter, %r6 and %r7 go from iteration to iteration, %d3 and %d4 are addresses.
PARTS = (
    *("add.s32 %r6, %r6, {n};", "add.s32 %r7, %r7, %r3;", "add.s32 %r7, %r7, 3;", "mul.lo.s32 %r6, %r6, 3;", "xor.b32 %r6, %r6, 5;"),
    *("add.s32 %r6, %r6, 1073741824;", "add.s32 %r7, %r7, %r2;", "mov.u32 %r6, %r5;", "shl.b32 %r8, %r5, 2;", "sub.s32 %r7, %r7, {n};"),
    *("rem.u32 %r6, %r5, {n};", "and.b32 %r8, %r5, 3;", "min.s32 %r6, %r6, {n};", "add.s64 %d1, %d1, 4;", "add.s64 %d2, %d2, {n};"),
    *("shr.u32 %r8, %r5, 1;", "setp.lt.s32 %p2, %r5, {n}; selp.b32 %r6, %r5, %r3, %p2;", "@%p3 add.s32 %r7, %r7, 2;"),
    *("mad.lo.s32 %r8, %r5, {n}, %r2;",),
    *("ld.global.u32 %r9, [%d1];", "@%p3 st.global.u32 [%d2], %r9;", "setp.eq.s32 %p4, %r2, 1; @%p4 ld.global.u32 %r9, [%d2+8];"),
    *("mul.wide.s32 %d3, %r{k}, 4; add.s64 %d4, %d1, %d3; ld.global.u32 %r9, [%d4];", "setp.gt.s32 %p3, %r7, {n};"),
    *("cvt.u64.u32 %d3, %r{k}; add.s64 %d4, %d2, %d3; st.global.u8 [%d4], %r9;", "setp.ne.s32 %p3, %r9, 0;"),
)
INNER = "mov.u32 %r10, 0;\n$I:\nadd.s32 %r7, %r7, 1; ld.global.u32 %r9, [%d1+4]; add.s32 %r10, %r10, 1;"
INNER += "setp.lt.s32 %p5, %r10, {n}; @%p5 bra $I;\n"
SKIPS = "setp.ge.s32 %p6, %r{k}, {n}; @%p6 bra $S;\nadd.s32 %r6, %r6, 2; ld.global.u32 %r9, [%d2+16];\n$S:\n"


def _loop(rng: random.Random) -> str:
    def filled(part: str) -> str:
        return part.replace("{n}", str(rng.choice((1, 2, 3, 5, 40)))).replace("{k}", str(rng.choice((5, 6, 7))))

    text = HEAD.replace("{start}", rng.choice(("0", "%r2", "%r3", "%r4", "-7"))) + "setp.lt.s32 %p3, %r2, 2; mov.u32 %r8, 0;\n$L:\n"
    body = [filled(rng.choice(PARTS)) for _ in range(rng.randrange(2, 7))]
    body += [filled(each) for each in (INNER, SKIPS) if rng.random() < 0.2]
    rng.shuffle(body)
    text += "\n".join(body) + f"\nadd.s32 %r5, %r5, {rng.choice((1, 1, 2, 12))}; setp.lt.s32 %p1, %r5, %r1; @%p1 bra $L;\n"
    return text + f"mul.wide.s32 %d3, %r{rng.choice((5, 6, 7, 8))}, 4; add.s64 %d4, %d2, %d3; st.global.u32 [%d4], %r4; ret; }}"


def _accesses(text: str, bound: int) -> Any:
    """Which bytes each thread accesses, and how many accesses there are; or why nobody knows."""
    args = [(1 << 33).to_bytes(8, "little"), (1 << 34).to_bytes(8, "little"), bound.to_bytes(4, "little")]
    try:
        kernel = Slice(parse(text).functions[0])
        paths = accesses_of(kernel, args, SHAPE, {})
    except NotProven as reason:
        return str(reason)
    found, bases = set[Any](), {None, *kernel.bases.values()}
    for path in paths:
        for access in path.accessed(bases):
            for cta, of_cta in zip(path.ctas, np.broadcast_to(access.of_cta, path.ctas.shape), strict=True):
                for thread, of_thread in zip(access.threads, np.broadcast_to(access.of_thread, access.threads.shape), strict=True):
                    found.add((int(cta), int(thread), access.base, int(of_cta + of_thread), access.nbytes, access.writes, access.own))
    return found, sum(path.count for path in paths)


def _of_seeds(seeds: range) -> Iterator[tuple[str, int]]:
    for seed in seeds:
        rng = random.Random(seed)
        yield _loop(rng), rng.choice((5, 30, 61, 130))


def _check(kernels: Iterable[tuple[str, int]], monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Compare the accesses. Returns how many kernels had some, and how many iterations were gone through at once."""
    known, leapt, real = 0, 0, Growth.iterations

    def counted(self: Growth, count: int, through: Any) -> Any:
        nonlocal leapt
        left = real(self, count, through)
        leapt += count * (left is not None)
        return left

    for text, bound in kernels:
        monkeypatch.setattr(walk, "MOST_PLACES", 0)  # iteration by iteration
        monkeypatch.setattr(walk, "MOST_STEPS", 1 << 20)
        wanted = _accesses(text, bound)
        monkeypatch.setattr(walk, "MOST_PLACES", 1 << 9)
        monkeypatch.setattr(walk, "MOST_STEPS", 1 << 16)
        monkeypatch.setattr(Growth, "iterations", counted)
        assert _accesses(text, bound) == wanted, (bound, text)
        monkeypatch.setattr(Growth, "iterations", real)
        known += isinstance(wanted, tuple)
    return known, leapt


@pytest.mark.parametrize("seeds", [range(12), pytest.param(range(12, 1500), marks=[pytest.mark.slow, pytest.mark.timeout(1800)])])
def test_rounds_at_once_have_the_accesses_of_the_loop(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    known, leapt = _check(_of_seeds(seeds), monkeypatch)
    assert known > len(seeds) // 3
    assert leapt > 10 * len(seeds)


# A sum of the counter, which does not grow evenly, and the counter behind the loop, are addresses.
SUM = (
    HEAD.replace("{start}", "0") + "$L:\nadd.s32 %r6, %r6, %r5; mul.wide.s32 %d3, %r6, 4; add.s64 %d4, %d2, %d3; ld.global.u32 %r9, [%d4];"
)
COUNTER = HEAD.replace("{start}", "0") + "$L:\nld.global.u32 %r9, [%d2];"
END = "add.s32 %r5, %r5, 1; setp.lt.s32 %p1, %r5, %r1; @%p1 bra $L;\n"
END += "mul.wide.s32 %d3, %r5, 4; add.s64 %d4, %d1, %d3; st.global.u32 [%d4], %r4; ret; }"
FAULTS: dict[str, tuple[Any, str, Any, Any]] = {
    "what an iteration leaves": (Growth, "_follows", lambda *_: True, [(SUM + END, 30)]),
    "the last iteration": (iterations, "_last", lambda value, _: walk.replace(value, of_cta=value.of_cta[:1]), [(COUNTER + END, 30)]),
    "registers that are lost": (
        KnownRegisters,
        "get",
        lambda self, key, other=None: dict.get(self, key, other),
        list(_of_seeds(range(60))),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_rounds(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, broken, kernels = FAULTS[fault]
    if len(kernels) == 1:
        assert _check(kernels, monkeypatch)[0] == 1
    monkeypatch.setattr(owner, name, broken)
    with pytest.raises(AssertionError):
        _check(kernels, monkeypatch)


def test_a_wrong_guess_is_no_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """With growth that is guessed wrong the accesses stay the same: the comparison refuses the iterations."""
    monkeypatch.setattr(iterations, "difference", lambda *_: np.zeros(1, np.uint64))
    assert _check(_of_seeds(range(8)), monkeypatch)[1] == 0
