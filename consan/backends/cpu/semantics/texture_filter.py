"""Which elements of a texture a fetch reads, and what it makes of them (CUDA Programming Guide, "Texture Fetching").

Positions are in texels, as float64: a coordinate that is normalized is multiplied by the extent first. The nearest element is that of the
integer below. A linear filter weighs the two elements along each dimension whose centres lie around the position; weights have 8 bits of
fraction, rounded to the nearest (the guide does not say how). The faces of a cube are filtered one by one.

Not handled: levels of detail (a texture has one level), anisotropic filters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass
from consan.textures.description import FACES, TextureInfo

Array = npt.NDArray[Any]
_WEIGHTS = 256.0


def _wrap(position: Array, extent: int) -> Array:
    return np.asarray(position - np.floor(position / extent) * extent)


def _mirror(position: Array, extent: int) -> Array:
    periods = np.floor(position / extent)
    inside = position - periods * extent
    return np.asarray(np.where(periods % 2 == 0, inside, extent - inside))


def _clipped(number: Array, extent: int) -> Array:
    return np.asarray(number.clip(0, extent - 1))


_POSITIONS: dict[str, Callable[[Array, int], Array]] = {"wrap": _wrap, "mirror": _mirror}
# A linear filter may need the element beyond the border; that of a mirrored texture is its neighbour.
_NUMBERS: dict[str, Callable[[Array, int], Array]] = {"wrap": lambda number, extent: number % extent}


@dataclass(frozen=True, eq=False)
class Texels:
    """A texture object and its elements: `data` has a row of channels for each."""

    info: TextureInfo
    data: Array

    def fetch(self, positions: Sequence[Array], layer: Array | int, *, exact: bool) -> Array:
        """The channels at positions, a row for each lane. `exact`: positions are numbers of elements (integer coordinates)."""
        if exact or self.info.filter == "point":
            moved = positions if exact else self._moved(positions)
            return self._values([np.floor(each).astype(np.int64) for each in moved], layer)
        lows = [each - 0.5 for each in self._moved(positions)]
        total: Array = np.zeros((len(lows[0]), self.info.channels))
        for corner in product((0, 1), repeat=len(lows)):
            weight: Array = np.ones(len(lows[0]))
            for low, step in zip(lows, corner, strict=True):
                part = np.floor((low - np.floor(low)) * _WEIGHTS + 0.5) / _WEIGHTS
                weight = weight * (part if step else 1 - part)
            numbers = [np.floor(low).astype(np.int64) + step for low, step in zip(lows, corner, strict=True)]
            total = total + weight[:, None] * self._values(numbers, layer)
        return total

    def gather(self, positions: Sequence[Array], layer: Array | int, channel: int) -> Array:
        """One channel of the four elements that a linear filter takes, counter-clockwise from the lower left one (ISA "tld4")."""
        x, y = (np.floor(each - 0.5).astype(np.int64) for each in self._moved(positions))
        corners = ((x, y + 1), (x + 1, y + 1), (x + 1, y), (x, y))
        return np.stack([self._values(corner, layer)[:, channel] for corner in corners], axis=1)

    def _moved(self, positions: Sequence[Array]) -> list[Array]:
        modes = zip(positions, self.info.addresses, self.info.extents, strict=True)
        return [_POSITIONS[mode](at, extent) if mode in _POSITIONS else at for at, mode, extent in modes]

    def _values(self, numbers: Sequence[Array], layer: Array | int) -> Array:
        """The channels of elements, by their numbers in each dimension."""
        info, place, stride, inside = self.info, np.int64(0), 1, np.ones(len(numbers[0]), bool)
        for number, mode, extent in zip(numbers, info.addresses, info.extents, strict=True):
            if mode == "border" or info.memory == "linear":
                inside = inside & (number >= 0) & (number < extent)
            place = place + stride * _clipped(_NUMBERS.get(mode, _clipped)(number, extent), extent)
            stride *= (stride == 1 and info.row) or extent
        found = self.data[place + stride * np.asarray(layer, np.int64)]
        found = info.floats(found) if info.gives_floats else found.astype(np.int64)
        return np.where(inside[:, None], found, 0)


def scaled(info: TextureInfo, coordinates: Sequence[Array]) -> list[Array]:
    """Positions in texels of floating-point coordinates."""
    extents = info.extents if info.normalized else (1,) * len(info.extents)
    return [each.astype(np.float64) * extent for each, extent in zip(coordinates, extents, strict=True)]


def on_cube(info: TextureInfo, x: Array, y: Array, z: Array) -> tuple[list[Array], Array]:
    """Positions on the face that a direction goes through, and the number of the face ("Cubemap Textures")."""
    x, y, z = (each.astype(np.float64) for each in (x, y, z))
    major = np.argmax(np.abs([x, y, z]), axis=0)
    length = np.choose(major, [x, y, z])
    negative = length < 0
    face = 2 * major + negative
    s = np.choose(face, [-z, z, x, x, x, -x])
    t = np.choose(face, [-y, -y, z, -z, -y, -y])
    extent = info.extents[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        return [np.nan_to_num((each / np.abs(length) + 1) / 2 * extent) for each in (s, t)], face


def layers_of(info: TextureInfo) -> int:
    """How many layers there are; of a cube they have six faces each."""
    return max(1, info.layers // FACES if info.cube else info.layers)
