"""Warp-wide register exchange: PTX ISA "shfl.sync", "vote.sync", "match.sync", "redux.sync", "elect.sync".

Functions get `mask` (bool [W, 32], the lanes that execute) and operands of shape [W, 32], or of one element for immediates. Lanes
outside the mask get unspecified values. Membermasks may differ between lanes of a warp: each lane sees the executing lanes of its
own mask. A shuffle from a lane that does not execute returns that lane's register as it stands (the ISA leaves it undefined).
The engine handles waiting for the members, activemask, and the deprecated forms without .sync.
"""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np

from .ops_base import CANONICAL_NAN, Array, Function, Op, Operations, any_true, warp

U32 = np.uint32
LANES = np.arange(32)
_FULL = U32(0xFFFFFFFF)


def ballot(flags: Array) -> Array:
    """Bit per lane of a bool [W, 32] array, as u32 [W, 1]."""
    packed = np.packbits(np.ascontiguousarray(flags), axis=-1, bitorder="little")
    return packed.view("<u4").astype(U32, copy=False)


def _spread(values: Array, mask: Array) -> Array:
    return np.broadcast_to(values, mask.shape)


def _is_uniform(x: Array) -> bool:
    """One value for all lanes, known without reading: a scalar, or a broadcast one."""
    return x.size == 1 or not any(x.strides)


# shfl ------------------------------------------------------------------------------------------------------------


def _source_lane(mode: str, b: Array, c: Array, lane: Array) -> tuple[Array, Array]:
    """Source lane j (own lane where out of range) and the predicate."""
    offset, clamp, segment = b & 31, c & 31, (c >> 8) & 31
    last = (lane & segment) | (clamp & ~segment & 31)
    if mode == "up":
        j = lane - offset
        inside = j >= last
    else:
        first = lane & segment
        j = {"down": lane + offset, "bfly": lane ^ offset, "idx": first | (offset & ~segment & 31)}[mode]
        inside = j <= last
    return np.where(inside, j, lane), inside


@lru_cache(maxsize=4096)
def _fixed_lane(mode: str, b: int, c: int) -> tuple[Array, Array]:
    return _source_lane(mode, np.asarray(b), np.asarray(c), LANES)


def _shuffle(mode: str, mask: Array, a: Array, b: Array, c: Array, _members: Array) -> tuple[Array, Array]:
    b, c, a = np.asarray(b), np.asarray(c), _spread(a, mask)
    if _is_uniform(b) and _is_uniform(c):
        lanes, inside = _fixed_lane(mode, int(b.flat[0]) & 31, int(c.flat[0]) & 0x1F1F)
        return np.take(a, lanes, axis=-1), _spread(inside, mask)
    lanes, inside = _source_lane(mode, b.astype(np.int64), c.astype(np.int64), LANES)
    position = lanes + (np.arange(len(mask)) * 32)[:, None]
    return np.take(np.ascontiguousarray(a).reshape(-1), position), _spread(inside, mask)


def _shfl(mode: str) -> Op:
    both = partial(_shuffle, mode)
    sources = "b32 b32 b32 b32"
    return warp(sources, "b32", lambda *operands: both(*operands)[0], pair=warp(sources, "b32 pred", both))


# vote ------------------------------------------------------------------------------------------------------------


def _votes(mask: Array, flags: Array, members: Array) -> tuple[Array, Array]:
    """Bits of the members that execute with a true and with a false flag, per lane."""
    members = np.asarray(members)
    return ballot(mask & flags) & members, ballot(mask & ~flags) & members


def _all(mask: Array, a: Array, members: Array) -> Array:
    return _spread(_votes(mask, a, members)[1] == 0, mask)


def _any(mask: Array, a: Array, members: Array) -> Array:
    return _spread(_votes(mask, a, members)[0] != 0, mask)


def _uni(mask: Array, a: Array, members: Array) -> Array:
    true, false = _votes(mask, a, members)
    return _spread((true == 0) | (false == 0), mask)


def _ballot(mask: Array, a: Array, members: Array) -> Array:
    return _spread(_votes(mask, a, members)[0], mask)


VOTES: dict[str, Function] = {"all": _all, "any": _any, "uni": _uni}


# match -----------------------------------------------------------------------------------------------------------


def _match_any(mask: Array, a: Array, members: Array) -> Array:
    a = _spread(a, mask)
    same = (a[:, :, None] == a[:, None, :]) & mask[:, None, :]
    return _spread(ballot(same)[..., 0] & members, mask)


def _match_all(mask: Array, a: Array, members: Array) -> tuple[Array, Array]:
    everyone = ballot(mask) & np.asarray(members)
    agree = _match_any(mask, a, members) == everyone
    return np.where(agree, _spread(everyone, mask), U32(0)), agree


def _match_all_op(word: str) -> Op:
    sources = (word, "b32")
    return warp(sources, "b32", lambda *operands: _match_all(*operands)[0], pair=warp(sources, "b32 pred", _match_all))


# redux -----------------------------------------------------------------------------------------------------------

BITWISE: dict[str, tuple[np.ufunc, int]] = {
    "and": (np.bitwise_and, 0xFFFFFFFF),
    "or": (np.bitwise_or, 0),
    "xor": (np.bitwise_xor, 0),
}
ARITHMETIC: dict[tuple[str, str], tuple[np.ufunc, int]] = {
    ("add", "u32"): (np.add, 0),
    ("add", "s32"): (np.add, 0),
    ("min", "u32"): (np.minimum, 0xFFFFFFFF),
    ("min", "s32"): (np.minimum, 0x7FFFFFFF),
    ("max", "u32"): (np.maximum, 0),
    ("max", "s32"): (np.maximum, -(1 << 31)),
}


def _lanes_of(members: Array) -> Array:
    """Membermasks as bools on a trailing axis of 32."""
    return np.asarray(((members[..., None] >> LANES.astype(U32)) & U32(1)).astype(np.bool_))


def _reduce(ufunc: np.ufunc, identity: int, mask: Array, a: Array, members: Array) -> Array:
    members = np.asarray(members)
    a, start = _spread(a, mask), a.dtype.type(identity)
    first = members.reshape(-1)[:1] if _is_uniform(members) else np.max(members, axis=-1, where=mask, initial=0)
    if _is_uniform(members) or not any_true(mask & (members != first[:, None])):
        total = ufunc.reduce(np.where(mask & _lanes_of(first), a, start), axis=-1, keepdims=True, dtype=a.dtype)
        return _spread(total, mask)
    chosen = mask[:, None, :] & _lanes_of(members)
    return np.asarray(ufunc.reduce(np.where(chosen, a[:, None, :], start), axis=-1, dtype=a.dtype))


def _order_key(a: Array) -> Array:
    """Signed integers that order like the floats, -0 below +0."""
    word = a.view(np.int32)
    return np.asarray(word ^ ((word >> np.int32(31)) & np.int32(0x7FFFFFFF)))


def _redux_float(name: str, magnitude: str, keep_nan: str) -> Op:
    ufunc, identity = ARITHMETIC[name, "s32"]

    def fn(mask: Array, a: Array, members: Array) -> Array:
        a = np.ascontiguousarray(_spread(np.abs(a) if magnitude else a, mask))
        nan = np.isnan(a)
        key = _reduce(ufunc, identity, mask, np.where(nan, np.int32(identity), _order_key(a)), members)
        result = np.asarray(key ^ ((key >> np.int32(31)) & np.int32(0x7FFFFFFF))).astype(np.int32)
        poison = _any(mask, nan, members) if keep_nan else _all(mask, nan, members)
        return np.where(poison, np.int32(CANONICAL_NAN["f32"]), result).view(np.float32)

    return warp("f32 b32", "f32", fn)


def _redux_bits(name: str) -> Op:
    return warp("b32 b32", "b32", partial(_reduce, *BITWISE[name]))


def _redux(name: str, word: str) -> Op:
    return warp((word, "b32"), word, partial(_reduce, *ARITHMETIC[name, word]))


# elect -----------------------------------------------------------------------------------------------------------


def _elect(mask: Array, members: Array) -> tuple[Array, Array]:
    """The lowest executing member leads: any one may, the same each time, and GPUs take that one (SEMANTICS.md, R-EL1)."""
    word = _spread(ballot(mask) & np.asarray(members), mask).astype(np.int64)
    leader = np.frexp((word & -word).astype(np.float64))[1] - 1
    return leader.astype(U32), leader == LANES


def _vote(mode: str) -> Op:
    return warp("pred b32", "pred", VOTES[mode])


def _match(mode: str, word: str) -> Op:
    return _match_all_op(word) if mode == "all" else warp((word, "b32"), "b32", _match_any)


OPERATIONS: Operations = {
    "shfl.sync.mode.b32": _shfl,
    "vote.sync.mode.pred": _vote,
    "vote.sync.ballot.b32": lambda: warp("pred b32", "b32", _ballot),
    "match.mode.sync.type": _match,
    "redux.sync.op.type": _redux,
    "redux.sync.bits.b32": _redux_bits,
    "redux.sync.extremum{.abs}{.NaN}.f32": _redux_float,
    "elect.sync": lambda: warp("b32", "b32 pred", _elect),
}
