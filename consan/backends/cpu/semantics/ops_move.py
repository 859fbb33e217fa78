"""mov between registers, and packing and unpacking of vectors: PTX ISA "Data Movement and Conversion Instructions: mov".

Only register and immediate sources: the engine handles addresses of variables and functions, and special registers. `pack` and
`unpack` give the Ops of `mov.b64 d, {a, b}` and `mov.b64 {a, b}, d`; the engine passes the vector's elements as flat operands.
A b128 register is two 64-bit words, lowest first, on a trailing axis of length two.
"""

from __future__ import annotations

import numpy as np

from .ops_base import Array, Op, Operations, from_ufunc, lane, raw

WIDTH = {"b16": 16, "b32": 32, "b64": 64, "b128": 128}


def _mov(vector: str, word: str) -> Op | None:
    if vector:
        return None
    if word == "b128":
        return lane("b128", "b128", np.asarray)
    # np.positive has no loop for booleans
    return from_ufunc(np.absolute if word == "pred" else np.positive, raw(word))


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


OPERATIONS: Operations = {"mov{.vec}.type": _mov}
