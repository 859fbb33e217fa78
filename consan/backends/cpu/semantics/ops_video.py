"""Video instructions: PTX ISA "Scalar Video Instructions", "SIMD Video Instructions" (packed bytes and half words).

vadd, vsub, vavrg, vabsdiff, vmin, vmax, each with 2 or 4 lanes, with .sat or .add (CUDA's __vabsdiffu4 is one of them), or scalar with .sat
and a second operation; vset of all three kinds; vshr. Does not handle a minimum or maximum behind operands of two signs, the optional lane
masks and selectors (operand suffixes such as .h10, .b3210), vshl and vmad: with .sat or a scale a chip gives other results than the ISA.
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


COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
SECOND: dict[str, Callable[[Array, Array], Array]] = {"add": np.add, "min": np.minimum, "max": np.maximum}


def _set(count: str, first: str, second: str, compare: str, add: str) -> Op:
    """vset2 and vset4: 1 in each lane whose comparison is true, or the number of these lanes plus the third operand."""
    a_lanes, b_lanes, out = LANE_DTYPES[count, first], LANE_DTYPES[count, second], LANE_DTYPES[count, "u32"]

    def fn(a: Array, b: Array, c: Array) -> Array:
        found = COMPARE[compare](split(a, a_lanes).astype(I64), split(b, b_lanes).astype(I64))
        if add:
            return np.asarray((found.sum(axis=-1) + c).astype(U32))
        return np.ascontiguousarray(found.astype(out)).view(U32)[..., 0]

    return lane("b32 b32 b32", "b32", fn)


def _scalar(compute: Callable[[Array, Array], Array], dest: str, first: str, second: str, sat: str, then: str) -> Op | None:
    if then in ("min", "max") and first != second and compute in COMPUTE.values():
        return None  # an H200 compares with another width and sign than the manual's pseudo-code
    limits = np.iinfo(np.uint32 if dest == "u32" else np.int32)

    def fn(a: Array, b: Array, *third: Array) -> Array:
        result = compute(np.asarray(a).astype(I64), np.asarray(b).astype(I64)).astype(I64)
        result = np.clip(result, limits.min, limits.max) if sat else result
        result = SECOND[then](result, np.asarray(third[0]).astype(I64)) if then else result
        return np.asarray(result.astype(U32))

    return lane((first, second, dest) if then else (first, second), "b32", fn)


def _scalar_set(first: str, second: str, compare: str, then: str) -> Op | None:
    return _scalar(COMPARE[compare], "u32", first, second, "", then)


_WIDEST_SHIFT = 32


def _shift(dest: str, first: str, sat: str, mode: str, then: str) -> Op | None:
    def compute(a: Array, b: Array) -> Array:
        return np.asarray(a >> (np.minimum(b, _WIDEST_SHIFT) if mode == "clamp" else b & (_WIDEST_SHIFT - 1)))

    return _scalar(compute, dest, first, "u32", sat, then)


OPERATIONS: Operations = {
    f"{name}{count}.type.type.type{form}": partial(_simd, name, count, mode)
    for name in COMPUTE
    for count in ("2", "4")
    for form, mode in (("{.sat}", ""), (".add", "add"))
}
OPERATIONS |= {f"vset{count}.type.type.cmp{{.add}}": partial(_set, count) for count in ("2", "4")}
OPERATIONS |= {f"{name}.type.type.type{{.sat}}{{.op2}}": partial(_scalar, COMPUTE[name]) for name in COMPUTE if name != "vavrg"}
OPERATIONS["vset.type.type.cmp{.op2}"] = _scalar_set
OPERATIONS["vshr.type.type.u32{.sat}.mode{.op2}"] = _shift
