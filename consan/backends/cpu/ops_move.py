"""mov between registers, and packing and unpacking of vectors: PTX ISA "Data Movement and Conversion Instructions: mov".

Only register and immediate sources: addresses of variables and functions, and special registers, are the engine's. `pack` and
`unpack` give the Ops of `mov.b64 d, {a, b}` and `mov.b64 {a, b}, d`; the engine passes the vector's elements as flat operands.
A b128 register is two 64-bit words, lowest first, on a trailing axis of length two.
"""

from __future__ import annotations

import numpy as np

from .ops_base import Array, Op, Row, from_ufunc, lane, raw, slots

WORDS = ("b8", "b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f16", "f32", "f64")
WIDTH = {"b16": 16, "b32": 32, "b64": 64, "b128": 128}


def _mov(word: str) -> Op:
    return from_ufunc(np.positive, raw(word))


def _mov_pred() -> Op:
    return from_ufunc(np.absolute, "pred")  # the identity on booleans, with an output; np.positive has no such loop


def _mov_b128() -> Op:
    return lane("b128", "b128", np.asarray)


def _holder(type_word: str, count: int) -> tuple[int, np.dtype[np.unsignedinteger]] | None:
    """Element width and dtype of a vector of `count` elements that fills the type, or None."""
    width = WIDTH.get(type_word, 0) // max(count, 1)
    if width not in (8, 16, 32, 64) or width * count != WIDTH[type_word] or count < 2:
        return None
    return width, np.dtype(f"uint{width}")


def pack(type_word: str, count: int) -> Op | None:
    """mov.type d, {e0, e1, ...}: the first element is the lowest."""
    element = _holder(type_word, count)
    if element is None:
        return None
    width, dtype = element
    whole = np.dtype(np.uint64) if type_word == "b128" else np.dtype(f"uint{WIDTH[type_word]}")

    def fn(*elements: Array) -> Array:
        out = np.empty((*np.broadcast_shapes(*(np.shape(x) for x in elements)), count), dtype)
        for i, x in enumerate(elements):
            out[..., i] = x
        packed = out.view(whole)
        return packed if type_word == "b128" else packed[..., 0]

    return lane((f"b{width}",) * count, type_word, fn)


def unpack(type_word: str, count: int) -> Op | None:
    """mov.type {e0, e1, ...}, a."""
    element = _holder(type_word, count)
    if element is None:
        return None
    width, dtype = element

    def fn(a: Array) -> tuple[Array, ...]:
        words = np.ascontiguousarray(a).reshape(*np.shape(a), 1) if type_word != "b128" else np.ascontiguousarray(a)
        parts = words.view(dtype)
        return tuple(parts[..., i] for i in range(count))

    return lane(type_word, (f"b{width}",) * count, fn)


_S = "Data Movement and Conversion Instructions: mov"

ROWS: list[Row] = [
    Row("mov", slots(WORDS), _mov, _S),
    Row("mov", slots("pred"), _mov_pred, _S),
    Row("mov", slots("b128"), _mov_b128, _S),
]
