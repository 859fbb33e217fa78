"""Encodes tensor maps with the driver (cuTensorMapEncode*), for devices on which consan's own encoding is untested.

The context must be current. consan's own rules are checked first, so that errors read the same on every device.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from consan._errors import UsageError
from consan.backends.driver import Driver
from consan.tensormap.description import ALIGNMENT, DTYPES, INTERLEAVES, L2_PROMOTIONS, NBYTES, OOB_FILLS, SWIZZLES, TensorMapInfo
from consan.tensormap.rules import validate


def encode_with_driver(driver: Driver, info: TensorMapInfo) -> bytes:
    """The bytes of a map, as the driver writes them."""
    validate(info)
    storage = (ctypes.c_uint8 * (NBYTES + ALIGNMENT))()
    address = -(-ctypes.addressof(storage) // ALIGNMENT) * ALIGNMENT
    u64, u32, i32 = ctypes.c_uint64, ctypes.c_uint32, ctypes.c_int32
    dtype = DTYPES[info.dtype].driver
    front = (ctypes.c_void_p(address), dtype, u32(info.rank), ctypes.c_void_p(info.address))
    shape = (_array(u64, info.dims), _array(u64, info.strides))
    if info.im2col:
        name = "cuTensorMapEncodeIm2col"
        box: tuple[Any, ...] = (_array(i32, info.lower), _array(i32, info.upper), u32(info.channels), u32(info.pixels))
    else:
        name, box = "cuTensorMapEncodeTiled", (_array(u32, info.box),)
    modes = (
        INTERLEAVES.index(info.interleave),
        SWIZZLES.index(info.swizzle),
        L2_PROMOTIONS.index(info.l2),
        OOB_FILLS.index(info.oob),
    )
    if not driver.has(name):
        raise UsageError("tensor map: the driver has none (CUDA 12 and newer do)")
    if driver.status(name, *front, *shape, *box, _array(u32, info.element_strides), *modes):
        raise UsageError(f"tensor map: the driver refuses {info}")
    return ctypes.string_at(address, NBYTES)


def _array(kind: Any, values: Sequence[int]) -> Any:
    return (kind * max(1, len(values)))(*values)
