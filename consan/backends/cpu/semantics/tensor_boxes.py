"""Which elements of a tensor a tensor copy moves, and where they lie in shared memory (PTX ISA, "Tensor Access Modes",
"Bounding Box", "Traversal-Stride", "Out of Boundary Access", "Swizzling Modes").

Plain arithmetic on a decoded map, vectorised: a `Box` lists its elements in the order of shared memory, as byte offsets from the
tensor's first element with a mask of those inside the tensor; `chunk_addresses` lists the 16-byte chunks of shared memory that hold them.

In im2col mode pixels follow one another along W, then H, then D, each from its lower corner to its extent plus upper corner, then N;
the starting pixel need not be the first of its row. The offsets of the instruction move the pixels after that.

Not handled (`Refused`): interleaved layouts, rows narrower than the swizzle pattern (whether they lie apart or packed is not
documented), im2col with a step along N, im2col that starts outside of its bounding box.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass
from consan.tensormap.description import TensorMapInfo

Array = npt.NDArray[Any]
CHUNK = 16
LINE = 7  # log2 of a line of 128 bytes: the number of the line in shared memory decides how its chunks are swizzled


class Refused(Exception):  # noqa: N818
    """A box whose layout this module does not know, in words."""


@dataclass(frozen=True, eq=False)
class Box:
    """Elements in the order of shared memory, flat."""

    offsets: Array  # bytes from the tensor's first element
    inside: npt.NDArray[np.bool_]


def check(info: TensorMapInfo) -> None:
    """Refuse maps whose layout this module does not know."""
    if info.interleave:
        raise Refused("an interleaved tensor map")
    rows = info.box_bytes // info.inner_bytes
    if info.swizzle and info.inner_bytes < info.swizzle and rows > 1:
        raise Refused(f"rows of {info.inner_bytes} bytes with a swizzle of {info.swizzle} bytes")


def tiled(info: TensorMapInfo, start: Sequence[int]) -> Box:
    """The box that begins at `start` (innermost first)."""
    steps = (1, *info.element_strides[1:])
    axes = [first + step * np.arange(count) for first, step, count in zip(start, steps, info.counts, strict=True)]
    return _combine(info, [axis.reshape(-1, *(1,) * k) for k, axis in enumerate(axes)])


def rows(info: TensorMapInfo, column: int, numbers: Sequence[int]) -> Box:
    """The rows of .tile::gather4 and .tile::scatter4, one after another."""
    if info.counts[1] != 1:
        raise Refused(f"rows of a box of {info.counts[1]} rows")
    return _combine(info, [column + np.arange(info.counts[0]), np.array(numbers)[:, None]])


def im2col(info: TensorMapInfo, start: Sequence[int], offsets: Sequence[int] = ()) -> Box:
    """The pixels that begin at `start` (channel, W, H, D, image, as many as there are), moved by `offsets` (W, H, D)."""
    if info.element_strides[-1] != 1:
        raise Refused("a step between images in im2col mode")
    carry = np.arange(info.pixels)
    positions = [start[0] + np.arange(info.channels)]
    for k in range(info.rank - 2):
        low, last = info.lower[k], info.dims[k + 1] - 1 + info.upper[k]
        if not low <= start[k + 1] <= last:
            raise Refused(f"an im2col start of {start[k + 1]} outside of its bounding box, {low} to {last}")
        position, carry = _advance(start[k + 1], low, last, info.element_strides[k + 1], carry)
        positions.append((position + (offsets[k] if offsets else 0))[:, None])
    positions.append((start[-1] + carry)[:, None])
    return _combine(info, positions)


def _advance(start: int, low: int, last: int, step: int, counts: Array) -> tuple[Array, Array]:
    """The positions `counts` steps after `start`, wrapping from `last` to `low`, and the number of wraps."""
    first, period = (last - start) // step + 1, (last - low) // step + 1
    later = counts - first
    wrapped = later >= 0
    position = np.where(wrapped, low + later % period * step, start + counts * step)
    return position, np.where(wrapped, 1 + later // period, 0)


def _combine(info: TensorMapInfo, positions: Sequence[Array]) -> Box:
    """The elements at all combinations of positions along each dimension, arrays that broadcast with one another."""
    offsets, inside = np.zeros(1, np.int64), np.ones(1, np.bool_)
    for position, extent, stride in zip(positions, info.dims, (info.element_bytes, *info.strides), strict=True):
        offsets = offsets + position * stride
        inside = inside & (position >= 0) & (position < extent)
    return Box(offsets.reshape(-1), inside.reshape(-1))


def chunk_addresses(start: int, nbytes: int, swizzle: int) -> Array:
    """The shared addresses of the chunks of a box that begins at `start`, in the order of its elements."""
    addresses = start + CHUNK * np.arange(nbytes // CHUNK)
    if swizzle:
        addresses ^= ((addresses >> LINE) & (swizzle // CHUNK - 1)) * CHUNK
    return addresses
