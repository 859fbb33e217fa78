"""fma.rn.f32 on a whole wave without temporaries: the one operation of `ops` that decides the speed of most kernels.

As in `ops_rounding.fma32`, the product is exact in f64 and the sum is rounded once there; the second rounding, to f32, is right
unless the f64 sum lies exactly halfway between two f32 values or its magnitude is below the normal range. Then, and for NaN
results, whose bits `ops` decides, the reference function does the work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

FUSED = frozenset({("fma", "rn", "f32"), ("mad", "rn", "f32")})

_LOW, _HALF = np.uint64((1 << 29) - 1), np.uint64(1 << 28)  # the bits of an f64 that an f32 has no room for
_TINY = np.float64(np.finfo(np.float32).tiny)


def fused_full(reference: Callable[..., Any], sources: list[Array], out: Array) -> Callable[[], None]:
    """A function that computes `out` from the three sources for all lanes."""
    a, b, c = sources
    total, other = np.empty(out.shape, np.float64), np.empty(out.shape, np.float64)
    total_bits, other_bits = total.view(np.uint64), other.view(np.uint64)
    flags = np.empty(out.shape, np.bool_)
    copy, multiply, add, count = np.copyto, np.multiply, np.add, np.count_nonzero
    absolute, at_least, both, equal = np.absolute, np.greater_equal, np.bitwise_and, np.equal
    size = out.size

    def full() -> None:
        copy(total, a)
        copy(other, b)
        multiply(total, other, total)
        copy(other, c)
        add(total, other, total)
        absolute(total, other)
        at_least(other, _TINY, flags)
        if count(flags) != size and not ((other == 0) | flags).all():
            copy(out, reference(a, b, c))
            return
        both(total_bits, _LOW, other_bits)
        equal(other_bits, _HALF, flags)
        if count(flags):
            copy(out, reference(a, b, c))
        else:
            copy(out, total, casting="same_kind")

    return full
