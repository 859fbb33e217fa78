"""Fetches of textures, lane by lane, from the words of the CUDA Programming Guide ("Texture Fetching") and none of consan's arithmetic."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np


def _inside(mode: str, number: int, extent: int) -> int | None:
    """The number of the element that stands for one outside; None: the border."""
    if 0 <= number < extent:
        return number
    if mode == "border":
        return None
    return number % extent if mode == "wrap" else min(max(number, 0), extent - 1)


def _position(mode: str, coordinate: float, extent: int, normalized: bool) -> float:
    """A coordinate in texels, moved into the texture where the mode does so with coordinates."""
    if normalized and mode == "wrap":
        coordinate = coordinate - math.floor(coordinate)
    if normalized and mode == "mirror":
        below = math.floor(coordinate)
        coordinate = coordinate - below if below % 2 == 0 else 1 - (coordinate - below)
    return coordinate * extent if normalized else coordinate


def texel(array: np.ndarray[Any, Any], modes: str, numbers: Sequence[int]) -> float:
    """An element; `numbers` are innermost first."""
    found = [_inside(modes, number, extent) for number, extent in zip(numbers, array.shape[::-1], strict=True)]
    return 0.0 if None in found else float(array[tuple(found[::-1])])  # type: ignore[index]


def fetch(array: np.ndarray[Any, Any], coordinates: Sequence[float], *, filter: str, address: str, normalized: bool) -> float:  # noqa: A002
    """What `tex` gives at coordinates, innermost first, of a texture of floating-point numbers without channels."""
    extents = array.shape[::-1]
    at = [_position(address, each, extent, normalized) for each, extent in zip(coordinates, extents, strict=True)]
    if filter == "point":
        return texel(array, address, [math.floor(each) for each in at])
    total = 0.0
    for corner in itertools.product((0, 1), repeat=len(at)):
        weight = 1.0
        for each, step in zip(at, corner, strict=True):
            part = round((each - 0.5 - math.floor(each - 0.5)) * 256) / 256
            weight *= part if step else 1 - part
        total += weight * texel(array, address, [math.floor(each - 0.5) + step for each, step in zip(at, corner, strict=True)])
    return total
