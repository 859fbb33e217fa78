"""The arithmetic of atom and red: PTX ISA "atom", without its memory side.

`atomic_function(op, type)` gives f(old, b, c) -> new for arrays of the type's dtype. Does not handle b128 (None), and ignores that
f32 additions on global memory flush subnormals: pass "add.ftz" for that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from .ops_base import Array
from .ops_registry import semantics

AtomicFunction = Callable[[Array, Array, "Array | None"], Array]

BITS, WORDS = ("b32", "b64"), ("u32", "u64", "s32", "s64")
HALVES = ("f16", "f16x2", "bf16", "bf16x2")


def _inc(old: Array, b: Array) -> Array:
    return np.asarray(np.where(old >= b, old.dtype.type(0), old + old.dtype.type(1)))


def _dec(old: Array, b: Array) -> Array:
    return np.where((old == 0) | (old > b), b, old - old.dtype.type(1))


def _cas(old: Array, b: Array, c: Array | None) -> Array:
    assert c is not None, "cas takes three operands"
    return np.where(old == b, c, old)


def _exch(old: Array, b: Array, c: Array | None = None) -> Array:
    return np.broadcast_to(b, old.shape)


def _binary(fn: Callable[[Array, Array], Array]) -> AtomicFunction:
    def apply(old: Array, b: Array, _c: Array | None = None) -> Array:
        return fn(old, b)

    return apply


# Operations that are an instruction of their own: (operation, type) -> the opcode's parts.
INSTRUCTIONS: dict[tuple[str, str], tuple[str, ...]] = {
    **{(name, word): (name, word) for name in ("add", "min", "max") for word in (*WORDS, *HALVES)},
    **{(name, word): (name, word) for name in ("and", "or", "xor") for word in BITS},
    ("add", "f32"): ("add", "f32"),
    ("add", "f64"): ("add", "f64"),
    ("add.ftz", "f32"): ("add", "ftz", "f32"),
}
OTHERS: dict[tuple[str, str], AtomicFunction] = {
    **{("exch", word): _exch for word in (*BITS, *WORDS, "f32", "f64")},
    **{("cas", word): _cas for word in ("b16", *BITS, *WORDS)},
    ("inc", "u32"): _binary(_inc),
    ("dec", "u32"): _binary(_dec),
}


@cache
def atomic_function(operation: str, word: str) -> AtomicFunction | None:
    """The function of `atom.<operation>.<type>` ("add.noftz" is "add"), or None when there is none."""
    key = (operation.removesuffix(".noftz"), word)
    if key in OTHERS:
        return OTHERS[key]
    op = semantics(INSTRUCTIONS[key]) if key in INSTRUCTIONS else None
    return _typed(op.fn, op.dests[0], word) if op else None


def _typed(fn: Callable[..., Array], result: str, word: str) -> AtomicFunction:
    """add.s32 computes on u32: view the operands as the instruction's words and the result as the caller's."""
    if result == word or word[0] != "s":
        return _binary(fn)
    wide = np.dtype(f"uint{word[1:]}")
    return _binary(lambda old, b: np.asarray(fn(np.asarray(old).view(wide), np.asarray(b).view(wide))).view(old.dtype))
