"""Warp-wide operations against the ISA's pseudo-code, lane by lane."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
import pytest
from ops_reference import as_words, op_of, run

FULL = 0xFFFFFFFF
WARPS = 6


def lanes(rng: np.random.Generator, high: int = 1 << 32) -> np.ndarray:
    return rng.integers(0, high, (WARPS, 32), dtype=np.uint64).astype(np.uint32)


def warp_run(opcode: str, mask: np.ndarray, *operands: np.ndarray, pair: bool = False) -> tuple[np.ndarray, ...]:
    op = op_of(opcode)
    if pair:
        assert op.pair is not None
        op = op.pair
    return run(op, mask, *operands)


def everyone() -> np.ndarray:
    return np.ones((WARPS, 32), bool)


def source_lane(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    offset, clamp, segment = b & 31, c & 31, c >> 8 & 31
    last, first = (lane & segment) | (clamp & ~segment), lane & segment
    j = {"up": lane - offset, "down": lane + offset, "bfly": lane ^ offset, "idx": first | (offset & ~segment)}[mode]
    inside = j >= last if mode == "up" else j <= last
    return (j if inside else lane), inside


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize("c", [0x1F, 0x0, 0x181F, 0x1000, 0x1C03, 0x101F, 0x100F])
def test_shuffle(mode: str, c: int) -> None:
    rng = np.random.default_rng(1)
    a, members = lanes(rng), np.array(FULL, np.uint32)
    shared = rng.integers(0, 40)
    for b in (np.array(shared, np.uint32), np.broadcast_to(np.uint32(shared), a.shape), lanes(rng, 70)):
        values, inside = warp_run(f"shfl.sync.{mode}.b32", everyone(), a, b, np.array(c, np.uint32), members, pair=True)
        (alone,) = warp_run(f"shfl.sync.{mode}.b32", everyone(), a, b, np.array(c, np.uint32), members)
        spread = np.broadcast_to(b, a.shape)
        for w in range(WARPS):
            for lane in range(32):
                j, p = source_lane(mode, lane, int(spread[w, lane]), c)
                assert (values[w, lane], inside[w, lane], alone[w, lane]) == (a[w, j], p, a[w, j])


def test_shuffle_with_a_clamp_per_lane() -> None:
    rng = np.random.default_rng(2)
    a, b, c = lanes(rng), lanes(rng, 32), lanes(rng) & np.uint32(0x1F1F)
    values, inside = warp_run("shfl.sync.idx.b32", everyone(), a, b, c, np.array(FULL, np.uint32), pair=True)
    for w in range(WARPS):
        for lane in range(32):
            j, p = source_lane("idx", lane, int(b[w, lane]), int(c[w, lane]))
            assert (values[w, lane], inside[w, lane]) == (a[w, j], p)


def members_of(mask: np.ndarray, members: np.ndarray, w: int, lane: int) -> list[int]:
    word = int(np.broadcast_to(members, mask.shape)[w, lane])
    return [i for i in range(32) if word >> i & 1 and mask[w, i]]


def masks(rng: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray]]:
    """Executing lanes and membermasks: all, a divergent subset, and two groups in one warp with their own masks."""
    some = rng.integers(0, 2, (WARPS, 32)).astype(bool)
    some[:, 0] = True
    group = np.where(np.arange(32) < 12, np.uint32(0xFFF), np.uint32(0xFFFFF000))
    per_warp = np.broadcast_to(rng.integers(1, 1 << 32, (WARPS, 1), dtype=np.uint64).astype(np.uint32), (WARPS, 32))
    return [
        (everyone(), np.array(FULL, np.uint32)),
        (some, np.array(FULL, np.uint32)),
        (everyone(), np.broadcast_to(np.uint32(0xFFFF), (WARPS, 32))),
        (everyone(), np.ascontiguousarray(np.broadcast_to(group, (WARPS, 32)))),
        (some, np.ascontiguousarray(per_warp)),
    ]


def each_lane(opcode: str, operand: np.ndarray, expected: Callable[[list[int], int, int], object], seed: int = 3) -> None:
    """Compare every executing member lane with `expected(member lanes, warp, lane)`."""
    for mask, members in masks(np.random.default_rng(seed)):
        (got,) = warp_run(opcode, mask, operand, members)
        for w in range(WARPS):
            for lane in np.flatnonzero(mask[w]):
                peers = members_of(mask, members, w, lane)
                if lane in peers:
                    assert got[w, lane] == expected(peers, w, lane)


def test_vote() -> None:
    rng = np.random.default_rng(4)
    for threshold in (1, 16, 31, 0, 32):
        p = rng.integers(0, 32, (WARPS, 32)) < threshold
        each_lane("vote.sync.all.pred", p, lambda peers, w, _l, p=p: all(p[w, peers]))
        each_lane("vote.sync.any.pred", p, lambda peers, w, _l, p=p: any(p[w, peers]))
        each_lane("vote.sync.uni.pred", p, lambda peers, w, _l, p=p: len(set(p[w, peers].tolist())) == 1)
        each_lane("vote.sync.ballot.b32", p, lambda peers, w, _l, p=p: sum(1 << i for i in peers if p[w, i]))
        each_lane("vote.ballot.sync.b32", p, lambda peers, w, _l, p=p: sum(1 << i for i in peers if p[w, i]))
        each_lane("vote.any.sync.pred", p, lambda peers, w, _l, p=p: any(p[w, peers]))


@pytest.mark.parametrize("bits", [32, 64])
def test_match(bits: int) -> None:
    rng = np.random.default_rng(5)
    a = rng.integers(0, 3, (WARPS, 32)).astype(f"u{bits // 8}")
    a[0] = 7
    each_lane(f"match.any.sync.b{bits}", a, lambda peers, w, lane: sum(1 << i for i in peers if a[w, i] == a[w, lane]))

    def everything(peers: list[int], w: int) -> int:
        return sum(1 << i for i in peers) if len(set(a[w, peers].tolist())) == 1 else 0

    each_lane(f"match.all.sync.b{bits}", a, lambda peers, w, _lane: everything(peers, w))
    for mask, members in masks(np.random.default_rng(6)):
        word, p = warp_run(f"match.all.sync.b{bits}", mask, a, members, pair=True)
        assert (p[mask] == (word[mask] != 0)).all()


REDUCTIONS: dict[str, Callable[[int, int], int]] = {
    "add.u32": lambda a, b: (a + b) & FULL,
    "add.s32": lambda a, b: (a + b + 2**31) % 2**32 - 2**31,
    "min.u32": min,
    "max.u32": max,
    "min.s32": min,
    "max.s32": max,
    "and.b32": lambda a, b: a & b,
    "or.b32": lambda a, b: a | b,
    "xor.b32": lambda a, b: a ^ b,
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_redux(name: str) -> None:
    a = lanes(np.random.default_rng(7)).view(np.int32 if name.endswith("s32") else np.uint32)
    each_lane(f"redux.sync.{name}", a, lambda peers, w, _l: reduce(REDUCTIONS[name], (int(x) for x in a[w, peers])))


@pytest.mark.parametrize("name", ["min", "max"])
@pytest.mark.parametrize("nan", ["", ".NaN"])
@pytest.mark.parametrize("magnitude", ["", ".abs"])
def test_redux_float(name: str, nan: str, magnitude: str) -> None:
    rng = np.random.default_rng(8)
    a = rng.standard_normal((WARPS, 32)).astype(np.float32)
    a[0, 3], a[1] = np.nan, np.nan
    a[2, :4] = [0.0, -0.0, -0.0, 0.0]
    python = {"min": min, "max": max}[name]

    def expected(peers: list[int], w: int) -> int:
        values = [abs(float(x)) if magnitude else float(x) for x in a[w, peers]]
        numbers = [x for x in values if x == x]
        if not numbers or (nan and len(numbers) < len(values)):
            return 0x7FFFFFFF
        best = python(numbers, key=lambda x: (x, np.copysign(1, x)))
        return as_words(np.array([best], np.float32))[0]

    for mask, members in masks(np.random.default_rng(9)):
        (got,) = warp_run(f"redux.sync.{name}{magnitude}{nan}.f32", mask, a, members)
        for w in range(WARPS):
            for lane in np.flatnonzero(mask[w]):
                peers = members_of(mask, members, w, lane)
                if lane in peers:
                    assert int(got.view(np.uint32)[w, lane]) == expected(peers, w)


def test_elect() -> None:
    for mask, members in masks(np.random.default_rng(10)):
        leader, p = warp_run("elect.sync", mask, members)
        for w in range(WARPS):
            for lane in np.flatnonzero(mask[w]):
                peers = members_of(mask, members, w, lane)
                if lane in peers:
                    assert (leader[w, lane], p[w, lane]) == (peers[0], lane == peers[0])
