"""Comparison and selection: PTX ISA "Comparison and Selection Instructions" and "Half Precision Comparison Instructions".

setp, set, selp, slct for every type. bf16 compares as f32 and f16 natively, which is exact. An `Op` for setp writes p alone; its
`pair` writes p|q (for the packed types there are always two). `.ftz` flushes f32 inputs only where a subnormal could change the result.
"""

from __future__ import annotations

import numpy as np

from .ops_base import DTYPES, Array, Function, Op, Operations, lane, raw
from .ops_half import HALVES, PACKED, flush_half, unpack
from .ops_logic import COMBINE
from .ops_rounding import flush

INTEGER: dict[str, np.ufunc] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}


def _ordered_ne(a: Array, b: Array) -> Array:
    return (a < b) | (a > b)


def _not(compare: Function) -> Function:
    return lambda a, b: np.logical_not(compare(a, b))


def _nan(a: Array, b: Array) -> Array:
    return np.isnan(a) | np.isnan(b)


# Ordered comparisons are false and unordered ones true with a NaN; Python's != is the unordered one.
FLOAT: dict[str, Function] = {
    **{name: INTEGER[name] for name in ("eq", "lt", "le", "gt", "ge")},
    "ne": _ordered_ne,
    "equ": _not(_ordered_ne),
    "neu": np.not_equal,
    "ltu": _not(np.greater_equal),
    "leu": _not(np.greater),
    "gtu": _not(np.less_equal),
    "geu": _not(np.less),
    "num": _not(_nan),
    "nan": _nan,
}

INTEGER_KINDS: dict[str, str] = {**dict.fromkeys(("eq", "ne"), "bus"), **dict.fromkeys(("lt", "le", "gt", "ge"), "us")}
"""First letters of the types that an integer comparison takes; the others are for unsigned words only."""


def is_comparison(name: str, ftz: str, word: str) -> bool:
    """Whether the manual has this comparison of this type ("Comparison and Selection Instructions", tables of the operators)."""
    if word in HALVES or word in PACKED or DTYPES[word].kind == "f":
        return name in FLOAT
    return not ftz and name in INTEGER and word[0] in INTEGER_KINDS.get(name, "u")


def comparison(name: str, ftz: str, word: str) -> Function:
    """The test t of two operands; for packed types an array with a trailing axis of two."""
    if word in HALVES:
        widen, compare = HALVES[word].widen, FLOAT[name]
        if ftz:
            return lambda a, b: compare(widen(flush_half(a)), widen(flush_half(b)))
        return lambda a, b: compare(widen(a), widen(b))
    if DTYPES[word].kind != "f":
        return INTEGER[name]
    compare = FLOAT[name]
    return (lambda a, b: compare(flush(a), flush(b))) if ftz else compare


# setp ------------------------------------------------------------------------------------------------------------


def _setp(name: str, boolean: str, ftz: str, word: str) -> Op | None:
    if not is_comparison(name, ftz, word):
        return None
    if word in PACKED:
        return _setp_packed(name, boolean, ftz, word)
    test = comparison(name, ftz, word)
    if not boolean:
        pair = lane((word, word), "pred pred", lambda a, b: _both(test(a, b)))
        return lane((word, word), "pred", test, ufunc=test if isinstance(test, np.ufunc) else None, pair=pair)
    combine = COMBINE[boolean]

    def both(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
        t = test(a, b)
        return combine(t, c), combine(np.logical_not(t), c)

    sources = (word, word, "pred")
    return lane(sources, "pred", lambda a, b, c: combine(test(a, b), c), pair=lane(sources, "pred pred", both))


def _both(t: Array) -> tuple[Array, Array]:
    return t, np.logical_not(t)


def _setp_packed(name: str, boolean: str, ftz: str, word: str) -> Op:
    test = comparison(name, ftz, PACKED[word].element)

    def fn(a: Array, b: Array, *c: Array) -> tuple[Array, Array]:
        t = test(unpack(a, word), unpack(b, word))
        low, high = t[..., 0], t[..., 1]
        return (COMBINE[boolean](low, *c), COMBINE[boolean](high, *c)) if boolean else (low, high)

    op = lane((word, word, "pred") if boolean else (word, word), "pred pred", fn)
    return Op(op.kind, op.sources, op.dests, op.fn, pair=op)


# set -------------------------------------------------------------------------------------------------------------

TRUE: dict[str, int] = {
    "u16": 0xFFFF,
    "s16": 0xFFFF,
    "u32": 0xFFFFFFFF,
    "s32": 0xFFFFFFFF,
    "f32": 0x3F800000,
    "f16": 0x3C00,
    "bf16": 0x3F80,
}
PACKED_TRUE: dict[str, int] = {"u32": 0xFFFF, "s32": 0xFFFF, "f16x2": 0x3C00, "bf16x2": 0x3F80}


def _set(name: str, boolean: str, ftz: str, dest: str, word: str) -> Op | None:
    if not is_comparison(name, ftz, word) or dest not in (PACKED_TRUE if word in PACKED else TRUE):
        return None
    if word in PACKED:
        return _set_packed(name, boolean, ftz, dest, word)
    test = comparison(name, ftz, word)
    true = np.array(TRUE[dest], f"u{DTYPES[dest].itemsize}")

    def fn(a: Array, b: Array, *c: Array) -> Array:
        t = test(a, b)
        return np.asarray(np.multiply(COMBINE[boolean](t, *c) if boolean else t, true)).view(DTYPES[dest])

    return lane((word, word, "pred") if boolean else (word, word), dest, fn)


def _set_packed(name: str, boolean: str, ftz: str, dest: str, word: str) -> Op:
    test = comparison(name, ftz, PACKED[word].element)
    true = np.uint32(PACKED_TRUE[dest])

    def fn(a: Array, b: Array, *c: Array) -> Array:
        t = test(unpack(a, word), unpack(b, word))
        low, high = (COMBINE[boolean](half, *c) if boolean else half for half in (t[..., 0], t[..., 1]))
        return np.asarray(low * true | (high * true) << np.uint32(16)).view(DTYPES[dest])

    return lane((word, word, "pred") if boolean else (word, word), dest, fn)


# selp, slct ------------------------------------------------------------------------------------------------------


def _select(a: Array, b: Array, chosen: Array) -> Array:
    # without a branch: np.where takes ten times as long when the lanes disagree at random
    return np.asarray(np.multiply(a ^ b, chosen) ^ b)


def _selp(word: str) -> Op:
    return lane((raw(word), raw(word), "pred"), raw(word), _select)


def _slct(ftz: str, word: str, test: str) -> Op:
    # A subnormal c is flushed to a zero that selects a, so only ftz and a negative subnormal differ.
    sign = flush if ftz else np.positive
    return lane((raw(word), raw(word), test), raw(word), lambda a, b, c: np.where(sign(c) >= 0, a, b))


OPERATIONS: Operations = {
    "setp.CmpOp{.ftz}.type": lambda name, ftz, word: _setp(name, "", ftz, word),
    "setp.CmpOp.BoolOp{.ftz}.type": _setp,
    "set.CmpOp{.ftz}.dtype.stype": lambda name, ftz, dest, word: _set(name, "", ftz, dest, word),
    "set.CmpOp.BoolOp{.ftz}.dtype.stype": _set,
    "selp.type": _selp,
    "slct.dtype.s32": lambda word: _slct("", word, "s32"),
    "slct{.ftz}.dtype.f32": lambda ftz, word: _slct(ftz, word, "f32"),
}
