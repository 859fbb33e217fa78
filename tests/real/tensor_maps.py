"""Tensor maps for launches of real kernels: consan's own encoder, which gives the bits that the driver gives."""

from __future__ import annotations

import importlib
from typing import Any

from real_cases import Array, Built

L2_128B = 2


def encode(address: int, record: dict[str, Any]) -> bytes:
    """The 128 bytes of a tiled map; `record` names the driver's arguments, sizes innermost first, strides in bytes."""
    encoder = importlib.import_module("consan.tensormap")
    return bytes(encoder.encode_tiled(address=address, **record))


def tiled(array: Array, said: dict[str, Any]) -> Built:
    """What Triton's launcher makes of a descriptor argument; `said` is the compiler's metadata (swizzle, element, box)."""
    strides = [step * array.itemsize for step in _steps(array.shape)]
    record = {
        "dtype": DEVICE_TO_HOST.get(said["elem_type"], said["elem_type"]),
        "dims": list(array.shape[::-1]),
        "strides": strides[-2::-1],
        "box": list(said["block_size"][::-1]),
        "est": [1] * array.ndim,
        "il": 0,
        "sw": said["swizzle"],
        "l2": L2_128B,
        "oob": 0,
    }
    return Built((array,), lambda address: encode(address, record))


def _steps(shape: tuple[int, ...]) -> list[int]:
    steps = [1]
    for size in shape[:0:-1]:
        steps.insert(0, steps[0] * size)
    return steps


# Numbers of element types in Triton's metadata are those of the instruction set, which differ from the driver's for three of them.
DEVICE_TO_HOST = {8: 10, 9: 8, 10: 9}
