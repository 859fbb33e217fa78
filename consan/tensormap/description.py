"""The fields of a tensor map, in the words of the driver: element types, modes, sizes. Dimensions are innermost first."""

from __future__ import annotations

from math import prod
from typing import Final

from consan.dataclass import dataclass

NBYTES: Final = 128
ALIGNMENT: Final = 64


@dataclass(frozen=True)
class DataType:
    """An element type: number in CUtensorMapDataType, number in tensormap.replace.elemtype, its bits in the map, its size."""

    name: str
    driver: int
    ptx: int
    code: int
    tf32: bool
    nbytes: int
    is_float: bool


_TYPES: Final = (
    *(("u8", 0, 0, 0, 1), ("u16", 1, 1, 1, 2), ("u32", 2, 2, 2, 4), ("s32", 3, 3, 3, 4), ("u64", 4, 4, 4, 8), ("s64", 5, 5, 5, 8)),
    *(("f16", 6, 6, 6, 2), ("f32", 7, 7, 7, 4), ("f64", 8, 9, 9, 8), ("bf16", 9, 10, 10, 2), ("f32.ftz", 10, 8, 8, 4)),
    *(("tf32", 11, 11, 7, 4), ("tf32.ftz", 12, 12, 8, 4)),
)
DTYPES: Final = {
    name: DataType(name, driver, ptx, code, name.startswith("tf32"), nbytes, "f" in name) for name, driver, ptx, code, nbytes in _TYPES
}
PACKED: Final = "b4x16"  # elements of 4 bits without padding, which only `decode` knows
INTERLEAVES: Final = (0, 16, 32)
SWIZZLES: Final = (0, 32, 64, 128)
PERIODS: Final = {0: 16, 32: 256, 64: 512, 128: 1024}  # swizzle -> bytes after which its pattern repeats
L2_PROMOTIONS: Final = (0, 64, 128, 256)
OOB_FILLS: Final = ("zero", "nan")


@dataclass(frozen=True)
class TensorMapInfo:
    """The decoded fields of a tensor map. Tuples are innermost first; `box` is empty for im2col, corners are empty for tiled maps."""

    dtype: str
    address: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]  # bytes, of dimensions 1 and up
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    interleave: int = 0
    swizzle: int = 0
    l2: int = 0
    oob: str = "zero"
    im2col: bool = False
    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()
    channels: int = 0
    pixels: int = 0

    @property
    def rank(self) -> int:
        """Dimensions of the tensor."""
        return len(self.dims)

    @property
    def element_bytes(self) -> int:
        """Bytes of an element."""
        return 1 if self.dtype == PACKED else DTYPES[self.dtype].nbytes

    @property
    def packed(self) -> int:
        """Elements of the tensor in one of the map's: the sizes of packed elements are those of their bytes."""
        return 2 if self.dtype == PACKED else 1

    @property
    def inner_bytes(self) -> int:
        """Bytes of the box along the innermost dimension."""
        return (self.channels if self.im2col else self.box[0]) * self.element_bytes

    @property
    def counts(self) -> tuple[int, ...]:
        """Elements that one copy moves along each of its dimensions: channels and pixels for im2col.

        The step along the innermost dimension is ignored without interleaving (driver API, `elementStrides`).
        """
        if self.im2col:
            return (self.channels, self.pixels)
        steps = (1, *self.element_strides[1:]) if not self.interleave else self.element_strides
        return tuple(-(-extent // step) for extent, step in zip(self.box, steps, strict=True))

    @property
    def box_bytes(self) -> int:
        """Bytes that one copy moves, and that its mbarrier counts: what lies outside of the tensor is among them."""
        return prod(self.counts) * self.element_bytes

    @property
    def noted_bytes(self) -> int:
        """The size of the box in bytes, as the driver stores it."""
        if self.im2col:
            return self.box_bytes
        return prod(extent // step for extent, step in zip(self.box, self.element_strides, strict=True)) * self.element_bytes
