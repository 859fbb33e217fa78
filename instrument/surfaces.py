"""Names of the bytes of surfaces: numbers that no address in global memory has (PTX ISA "suld", "sust", "sured").

A surface is an array that no address reaches. The handle and the coordinates name its bytes; the lowest coordinate counts bytes
(`.p`: samples). The bits suffice for the largest arrays of the CUDA Programming Guide, "Technical Specifications", and for 2**16 handles.
A negative coordinate names no byte of a smaller array. Two handles may be of one array: consan/checker/source/launch.hpp notes that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

__all__ = ["FIRST", "GEOMETRIES", "HANDLE", "HANDLE_BITS", "fields", "in_order", "named"]

FIRST: Final = 3 << 62  # names are at least that
HANDLE: Final = 46  # the lowest bit of the handle
HANDLE_BITS: Final = 16
_BITS: Final = {"1d": (32,), "2d": (22, 24), "3d": (18, 14, 14), "a1d": (32, 14), "a2d": (20, 15, 11)}  # from the lowest coordinate on
GEOMETRIES: Final = frozenset(_BITS)
_T = TypeVar("_T")
_NAMES: Final = {"1d": "x", "2d": "xy", "3d": "xyz", "a1d": ("x", "layer"), "a2d": ("x", "y", "layer")}


def in_order(geometry: str, coordinates: Sequence[_T]) -> list[_T]:
    """Coordinates from the lowest one on: the operand of an array begins with the layer, and may end with one that is ignored."""
    found = list(coordinates[: len(_BITS[geometry])])
    return [*found[1:], found[0]] if geometry.startswith("a") else found


def fields(geometry: str) -> list[tuple[int, int]]:
    """The lowest bit of each coordinate in a name, and how many bits it has."""
    bits = _BITS[geometry]
    return [(sum(bits[:number]), count) for number, count in enumerate(bits)]


def named(name: int, geometry: str) -> str:
    """A byte of a surface for reports: `surface 1, byte x=12, y=3`."""
    values = [name >> at & ((1 << count) - 1) for at, count in fields(geometry)]
    places = ", ".join(f"{word}={value}" for word, value in zip(_NAMES[geometry], values, strict=True))
    return f"surface {name >> HANDLE & ((1 << HANDLE_BITS) - 1)} at {places}"
