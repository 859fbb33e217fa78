"""SIMD video instructions on packed bytes and half words: PTX ISA "SIMD Video Instructions".

vadd, vsub, vavrg, vabsdiff, vmin, vmax, each with 2 or 4 lanes, with .sat or .add; CUDA's __vabsdiffu4 is one of them. Does not handle
the optional lane masks and selectors (operand suffixes such as .h10, .b3210), vset2/vset4 and the scalar forms (vadd, vmad ...).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from .ops_base import Array, DType, Op, Operations, lane
from .ops_integer import split

I64, U32 = np.int64, np.uint32

LANE_DTYPES: dict[tuple[str, str], DType] = {
    ("2", "u32"): np.dtype(np.uint16),
    ("2", "s32"): np.dtype(np.int16),
    ("4", "u32"): np.dtype(np.uint8),
    ("4", "s32"): np.dtype(np.int8),
}


def _average(a: Array, b: Array) -> Array:
    """Half of the sum, rounded away from zero."""
    total = a + b
    return np.asarray((total + (total >= 0)) >> 1)


COMPUTE: dict[str, Callable[[Array, Array], Array]] = {
    "vadd": lambda a, b: a + b,
    "vsub": lambda a, b: a - b,
    "vavrg": _average,
    "vabsdiff": lambda a, b: np.abs(a - b),
    "vmin": np.fmin,
    "vmax": np.fmax,
}


def _simd(name: str, count: str, mode: str, dest: str, first: str, second: str, sat: str = "") -> Op:
    compute, a_lanes, b_lanes, out = COMPUTE[name], LANE_DTYPES[count, first], LANE_DTYPES[count, second], LANE_DTYPES[count, dest]
    limits = np.iinfo(out)

    def fn(a: Array, b: Array, c: Array) -> Array:
        lanes = compute(split(a, a_lanes).astype(I64), split(b, b_lanes).astype(I64))
        if mode == "add":
            return np.asarray((lanes.sum(axis=-1) + c).astype(U32))
        lanes = np.clip(lanes, limits.min, limits.max) if sat else lanes
        return np.ascontiguousarray(lanes.astype(out)).view(U32)[..., 0]

    return lane("b32 b32 b32", "b32", fn)


OPERATIONS: Operations = {
    f"{name}{count}.type.type.type{form}": partial(_simd, name, count, mode)
    for name in COMPUTE
    for count in ("2", "4")
    for form, mode in (("{.sat}", ""), (".add", "add"))
}
