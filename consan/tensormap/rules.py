"""The driver's rules for tensor maps, checked here so that errors read the same on every device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from consan._errors import UsageError
from consan.tensormap.description import DTYPES, INTERLEAVES, L2_PROMOTIONS, OOB_FILLS, SWIZZLES, TensorMapInfo

CORNER_WIDTHS: Final = {3: 16, 4: 8, 5: 5}  # rank -> bits of a corner's coordinate
# The driver took boxes of 131,072 bytes and refused one of 236,256. The limit in between is taken to be the shared memory of a CTA.
_LARGEST_BOX: Final = 227 << 10
_Rule = tuple[Callable[[TensorMapInfo], bool], str]  # what must hold, and what to say when it does not


def _all(values: Sequence[int], low: int, high: int) -> bool:
    return all(low <= value <= high for value in values)


def _multiple(values: Sequence[int], unit: int) -> bool:
    return not any(value % unit for value in values)


def _corners_fit(info: TensorMapInfo) -> bool:
    limit = 1 << CORNER_WIDTHS[info.rank] - 1
    return _all((*info.lower, *info.upper), -limit, limit - 1)


def _corners_leave_pixels(info: TensorMapInfo) -> bool:
    return all(extent + up - low > 0 for extent, low, up in zip(info.dims[1:-1], info.lower, info.upper, strict=True))


_FIRST_RULES: Final[tuple[_Rule, ...]] = (
    (lambda i: i.dtype in DTYPES, f"element type {{dtype!r}}: expected one of {', '.join(DTYPES)}"),
    (lambda i: i.interleave in INTERLEAVES, "interleave {interleave}: expected 0, 16 or 32 bytes"),
    (lambda i: i.swizzle in SWIZZLES, "swizzle {swizzle!r}: expected 0, 32, 64 or 128 bytes"),
    (lambda i: i.l2 in L2_PROMOTIONS, "l2 promotion {l2}: expected 0, 64, 128 or 256 bytes"),
    (lambda i: i.oob in OOB_FILLS, "out-of-bounds fill {oob!r}: expected 'zero' or 'nan'"),
    (lambda i: 1 <= i.rank <= 5, "{rank} dimensions: expected 1 to 5"),
    (lambda i: len(i.strides) == i.rank - 1, "{strides} strides: expected one for each dimension but the innermost"),
    (lambda i: len(i.element_strides) == i.rank, "element strides {element_strides}: expected one for each of {rank} dimensions"),
    (lambda i: i.rank >= 3 or not (i.interleave or i.im2col), "{rank} dimensions: interleaved and im2col tensors have 3 to 5"),
)
_TILED_RULES: Final[tuple[_Rule, ...]] = (
    (lambda i: len(i.box) == i.rank, "box {box}: expected one size for each of {rank} dimensions"),
    (lambda i: _all(i.box, 1, 256), "box {box}: expected sizes of 1 to 256"),
)
_IM2COL_RULES: Final[tuple[_Rule, ...]] = (
    (lambda i: len(i.lower) == len(i.upper) == i.rank - 2, "corners {lower} and {upper}: expected rank - 2 coordinates each"),
    (_corners_fit, "corners {lower} and {upper}: beyond what a tensor of {rank} dimensions can hold"),
    (_corners_leave_pixels, "corners {lower} and {upper} leave no pixel of {dims}"),
    (lambda i: 1 <= i.channels <= 256, "{channels} channels per pixel: expected 1 to 256"),
    (lambda i: 1 <= i.pixels <= 1024, "{pixels} pixels per column: expected 1 to 1024"),
)
_LAST_RULES: Final[tuple[_Rule, ...]] = (
    (lambda i: i.oob == "zero" or DTYPES[i.dtype].is_float, "out-of-bounds NaN: {dtype} has none"),
    (
        lambda i: 0 <= i.address < 1 << 64 and i.address % (32 if i.interleave == 32 else 16) == 0,
        "address {address:#x}: expected a multiple of 16 (32 under interleave 32)",
    ),
    (lambda i: _all(i.dims, 1, 1 << 32), "dimensions {dims}: expected 1 to 2^32 elements each"),
    (lambda i: _all(i.strides, 0, (1 << 40) - 1), "strides {strides}: expected less than 2^40 bytes"),
    (
        lambda i: _multiple(i.strides, 32 if i.interleave == 32 else 16),
        "strides {strides}: expected multiples of 16 bytes (32 under interleave 32)",
    ),
    (lambda i: _all(i.element_strides, 1, 8), "element strides {element_strides}: expected 1 to 8"),
    (lambda i: bool(i.interleave) or i.inner_bytes % 16 == 0, "the innermost {inner_bytes} bytes of the box are no multiple of 16"),
    (
        lambda i: bool(i.interleave) or not i.swizzle or i.inner_bytes <= i.swizzle,
        "the innermost {inner_bytes} bytes of the box are more than swizzle {swizzle} takes",
    ),
    (lambda i: i.noted_bytes <= _LARGEST_BOX, "a box of {noted_bytes:,} bytes is more than shared memory holds"),
)


def validate(info: TensorMapInfo) -> None:
    """UsageError with one line for the first thing that the driver would refuse."""
    for rules in (_FIRST_RULES, _IM2COL_RULES if info.im2col else _TILED_RULES, _LAST_RULES):
        for holds, message in rules:
            if not holds(info):
                raise UsageError("tensor map: " + message.format_map(_Values(info)))


class _Values(dict[str, object]):
    """The attributes of a map, by name, for the messages."""

    def __init__(self, info: TensorMapInfo) -> None:
        super().__init__()
        self.info = info

    def __missing__(self, name: str) -> object:
        return getattr(self.info, name)
