"""The fields of a texture object, in the words of the CUDA runtime (`cudaResourceDesc`, `cudaTextureDesc`). Extents are innermost first."""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass

MEMORIES: Final = ("array", "linear", "pitch2d")
FILTERS: Final = ("point", "linear")
ADDRESSES: Final = ("clamp", "border", "wrap", "mirror")
READS: Final = ("element", "normalized")
SHAPES: Final = ("plain", "layered", "cube", "multisample")
TYPES: Final = ("u8", "s8", "u16", "s16", "u32", "s32", "f16", "f32")
FACES: Final = 6  # of a cube


@dataclass(frozen=True)
class TextureInfo:
    """A texture object. `address`: of the first texel. `layers`: 0 without; of a cube: six faces for each layer, or six; of several
    samples: their number.

    `memory`: of an array no address reaches an element, of the others the elements lie at `address`. `row`: elements from one row
    to the next; 0: rows without gaps. `addresses`: the
    addressing mode of each dimension. A texel outside with mode "border", and one outside of linear memory, is zero. `reference`: the
    reference of a module that the texture is bound to; empty: it is passed by its handle.
    """

    type: str
    channels: int
    extents: tuple[int, ...]
    address: int = 0
    layers: int = 0
    cube: bool = False
    memory: str = "array"
    filter: str = "point"
    addresses: tuple[str, ...] = ()
    normalized: bool = False
    read: str = "element"
    reference: str = ""
    multisample: bool = False
    row: int = 0

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy type of a channel."""
        return np.dtype({"u": "u", "s": "i", "f": "f"}[self.type[0]] + str(int(self.type[1:]) // 8))

    @property
    def texel_bytes(self) -> int:
        """Bytes of an element, of all its channels."""
        return self.channels * self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes from the first element to the end of the last."""
        count = self.row * (self.extents[1] - 1) + self.extents[0] if self.row else prod(self.extents) * max(1, self.layers)
        return count * self.texel_bytes

    @property
    def gives_floats(self) -> bool:
        """Whether a fetch gives floating-point numbers."""
        return self.type[0] == "f" or self.read == "normalized"

    @property
    def reached(self) -> TextureMemory:
        """Its elements that have addresses."""
        return TextureMemory(self.address, self.nbytes if self.memory != "array" else 0, self.texel_bytes, self.memory == "linear")

    def floats(self, texels: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The values that fetches of these channels give, before they are filtered ("Texture Functions", read mode)."""
        values = texels.astype(np.float64)
        if self.read == "element":
            return values
        return np.asarray(np.maximum(values / np.iinfo(self.dtype).max, -1.0))


@dataclass(frozen=True)
class TextureMemory:
    """The bytes of a texture that have addresses; none of an array.

    `numbered`: the n-th element lies `n * element_bytes` behind the first.
    """

    address: int
    nbytes: int
    element_bytes: int
    numbered: bool = False


@dataclass(frozen=True)
class SurfaceInfo:
    """A surface object: the address of its array, the bytes of a row, the other extents, and its layers."""

    address: int
    row: int
    rest: tuple[int, ...] = ()
    layers: int = 0

    @property
    def bounds(self) -> tuple[int, ...]:
        """The extents, innermost first, with its layers."""
        return (self.row, *self.rest, *((self.layers,) if self.layers else ()))
