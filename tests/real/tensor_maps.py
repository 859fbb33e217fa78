"""Tensor maps for launches of real kernels: consan's own encoder, which gives the bits that the driver gives.

Host code names everything by number (`record`: as in cuTensorMapEncodeTiled, sizes innermost first, strides in bytes).
"""

from __future__ import annotations

from typing import Any

from real_cases import Array, Built

from consan.tensormap import description, encoding

BY_DRIVER = {dtype.driver: name for name, dtype in description.DTYPES.items()}
BY_PTX = {dtype.ptx: dtype.driver for dtype in description.DTYPES.values()}
L2_128B = 2


def encode(address: int, record: dict[str, Any]) -> bytes:
    """The 128 bytes of a tiled map."""
    return encoding.encode_tiled(
        BY_DRIVER[record["dtype"]],
        address,
        record["dims"],
        record["strides"],
        record["box"],
        element_strides=record["element_strides"],
        interleave=description.INTERLEAVES[record["interleave"]],
        swizzle=description.SWIZZLES[record["swizzle"]],
        l2=description.L2_PROMOTIONS[record["l2"]],
        oob=description.OOB_FILLS[record["oob"]],
    )


def tiled(array: Array, said: dict[str, Any]) -> Built:
    """What Triton's launcher makes of a descriptor argument; `said` is the compiler's metadata (swizzle, element, box)."""
    record = {
        "dtype": BY_PTX[said["elem_type"]],
        "dims": list(array.shape[::-1]),
        "strides": list(array.strides[-2::-1]),
        "box": list(said["block_size"][::-1]),
        "element_strides": [1] * array.ndim,
        "interleave": 0,
        "swizzle": said["swizzle"],
        "l2": L2_128B,
        "oob": 0,
    }
    return Built((array,), lambda address: encode(address, record))
