"""Tensor copies written out element by element, from the words of the ISA and with none of consan's arithmetic."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# PTX ISA, "Swizzling Modes": lines of 128 bytes in shared memory, and which 16-byte piece of the unswizzled line stands at each place.
PATTERNS = {
    0: [[0, 1, 2, 3, 4, 5, 6, 7]],
    32: [[0, 1, 2, 3, 4, 5, 6, 7], [1, 0, 3, 2, 5, 4, 7, 6]],
    64: [[0, 1, 2, 3, 4, 5, 6, 7], [1, 0, 3, 2, 5, 4, 7, 6], [2, 3, 0, 1, 6, 7, 4, 5], [3, 2, 1, 0, 7, 6, 5, 4]],
    128: [
        [0, 1, 2, 3, 4, 5, 6, 7],
        [1, 0, 3, 2, 5, 4, 7, 6],
        [2, 3, 0, 1, 6, 7, 4, 5],
        [3, 2, 1, 0, 7, 6, 5, 4],
        [4, 5, 6, 7, 0, 1, 2, 3],
        [5, 4, 7, 6, 1, 0, 3, 2],
        [6, 7, 4, 5, 2, 3, 0, 1],
        [7, 6, 5, 4, 3, 2, 1, 0],
    ],
}


def place(address: int, swizzle: int) -> int:
    """Where in shared memory a byte goes that would be at `address` without swizzling."""
    pattern = PATTERNS[swizzle][address // 128 % len(PATTERNS[swizzle])]
    return address // 128 * 128 + pattern.index(address // 16 % 8) * 16 + address % 16


def tiled(start: Sequence[int], box: Sequence[int], steps: Sequence[int]) -> list[tuple[int, ...]]:
    """Coordinates of a box in NumPy's order (outermost first), in the order of shared memory."""
    axes = [range(first, first + extent, step) for first, extent, step in zip(start, box, steps, strict=True)]
    return list(itertools.product(*axes))


def im2col(
    shape: Sequence[int], start: Sequence[int], lower: Sequence[int], upper: Sequence[int], steps: Sequence[int], pixels: int
) -> Iterator[tuple[int, ...]]:
    """Coordinates of pixels (N, then D, H, W as there are); corners and steps without N, outermost first."""
    position = list(start)
    for _ in range(pixels):
        yield tuple(position)
        axis = len(position) - 1
        while axis > 0:
            position[axis] += steps[axis - 1]
            if position[axis] <= shape[axis] - 1 + upper[axis - 1]:
                break
            position[axis] = lower[axis - 1]
            axis -= 1
        if axis == 0:
            position[0] += 1


def at(tensor: Array, index: Sequence[int], fill: int) -> Any:
    """An element, or what fills outside of the tensor."""
    if all(0 <= k < extent for k, extent in zip(index, tensor.shape, strict=True)):
        return tensor[tuple(index)]
    return tensor.dtype.type(fill)


def shared_image(tensor: Array, coordinates: Sequence[tuple[int, ...]], first: int, swizzle: int, memory: Array, fill: int = 0) -> Array:
    """Shared memory `memory` after a load of the elements at `coordinates` to address `first` of it."""
    image, size = memory.copy(), tensor.itemsize
    for k, index in enumerate(coordinates):
        where = place(first + k * size, swizzle)
        image[where : where + size] = np.frombuffer(at(tensor, index, fill).tobytes(), np.uint8)
    return image


def stored(tensor: Array, coordinates: Sequence[tuple[int, ...]], first: int, swizzle: int, memory: Array, combine: Any) -> Array:
    """The tensor after a store of shared memory at `first`; `combine(old, new)` is the element."""
    result, size = tensor.copy(), tensor.itemsize
    for k, index in enumerate(coordinates):
        where = place(first + k * size, swizzle)
        value = memory[where : where + size].copy().view(tensor.dtype)[0]
        if all(0 <= c < extent for c, extent in zip(index, tensor.shape, strict=True)):
            result[index] = combine(result[index], value)
    return result
