"""Tensor maps: the 128 bytes of a CUtensorMap, encoded and decoded without a driver.

NVIDIA documents the parameters (CUDA driver API, "Tensor Map Object Management"; PTX ISA, "Tensor-map") and not the bits.
The table below was solved from maps that the driver encoded on an H200 with one parameter changed at a time, then held against
650 maps with random parameters: it explains every bit that the driver set, and `encode_*` give the same bytes. A part of
them is kept in tests/unit/tensormap/tensormaps.json; tests/gpu/test_tensormap_driver.py writes new ones and holds them against a driver.

| word | bits  | field            | holds                                                                              |
|------|-------|------------------|------------------------------------------------------------------------------------|
| 0, 1 | 0-63  | address          | of the first element                                                               |
| 2    | 0     | im2col           | 1: im2col, 0: tiled                                                                |
| 2    | 4-6   | rank             | minus 1                                                                            |
| 2    | 7-10  | dtype            | as in tensormap.replace.elemtype; tf32 is f32 with the next field set              |
| 2    | 11-12 | interleave       | none, 16 bytes, 32 bytes                                                           |
| 2    | 13-14 | swizzle          | none, 32, 64, 128 bytes                                                            |
| 2    | 15    | oob_nan          | what lies outside reads as NaN                                                     |
| 2    | 16    | tf32             | elements are rounded to tf32                                                       |
| 2    | 17-18 | l2               | promotion: none, 64, 128, 256 bytes                                                |
| 3-6  | 0-31  | stride0..3       | of dimensions 1 to 4, in units of 16 bytes, low 32 bits                            |
| 7    | 4 x 4 | stride0..3_high  | the four bits above                                                                |
| 8-12 | 0-31  | dim0..4          | minus 1, innermost first                                                           |
| 13   | 3 x 5 | element_stride   | minus 1, innermost first                                                           |
| 13   | 24-31 | box0             | minus 1; im2col: channels per pixel minus 1                                        |
| 14   | 0-31  | box1..4          | tiled: minus 1, 8 bits each                                                        |
| 14   | 0-31  | corner           | im2col, signed, W first: lower from bit 0, upper from bit 16, in fields of 16 bits (3 |
|      |       |                  | dimensions), 8 bits (4 dimensions) or 5 bits (5 dimensions)                        |
| 15   | 0-9   | pixels           | im2col: pixels per column minus 1                                                  |
| 16   | 0-31  | box_bytes        | notes of the driver, which tensormap.replace leaves as they are: bytes of the box  |
| 18   | 0-31  | alignment        | (partial steps of an element stride dropped), and of the swizzle pattern's period  |

The host code of CuTe DSL encodes its maps by itself (seen with 4.8.1): bit 1 of word 2 is always set, bit 21 where the tensor has 128 KiB
or more, and words 16 to 31 are what the stack held. So copies do not depend on these bits, and `decode` passes over them.
It writes the dtype 11 for packed elements of 4 bits without padding (.b4x16): 128 elements of its box span 64 bytes, with a swizzle of 64.

Dimensions, strides, boxes and corners behind the rank are zero. Bits that are in no row were never set; `decode` refuses
a map that has one set, rather than guess what a newer device means by it. Blackwell's other additions (padded 4 and 6-bit elements,
swizzle atoms of 32 and 64 bytes, im2col::w) are such: this table does not know them and the encoders refuse them.

Dimensions, strides, boxes and corners are innermost first here, as in the driver; `consan.TensorMap` turns NumPy's order around.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from consan._errors import UsageError
from consan.dataclass import dataclass
from consan.tensormap.description import DTYPES, INTERLEAVES, L2_PROMOTIONS, NBYTES, OOB_FILLS, PACKED, PERIODS, SWIZZLES, TensorMapInfo
from consan.tensormap.rules import CORNER_WIDTHS, validate


class TensorMapError(UsageError):
    """The bytes are no tensor map that this table explains."""


@dataclass(frozen=True)
class MapField:
    """Bits of a tensor map, counted from bit 0 of byte 0."""

    name: str
    offset: int
    width: int

    @property
    def word(self) -> int:
        """The 32-bit word in which it starts."""
        return self.offset // 32

    @property
    def shift(self) -> int:
        """Its first bit within that word."""
        return self.offset % 32

    def get(self, bits: int) -> int:
        """Its value in the 1024 bits of a map."""
        return bits >> self.offset & (1 << self.width) - 1


def _run(name: str, count: int, word: int, shift: int, width: int) -> tuple[MapField, ...]:
    return tuple(MapField(name.format(k), 32 * word + shift + width * k, width) for k in range(count))


COMMON: Final = (
    MapField("address", 0, 64),
    *(MapField("im2col", 64, 1), MapField("rank", 68, 3), MapField("dtype", 71, 4), MapField("interleave", 75, 2)),
    MapField("swizzle", 77, 2),
    *(MapField("oob_nan", 79, 1), MapField("tf32", 80, 1), MapField("l2", 81, 2)),
    *(_run("stride{}", 4, 3, 0, 32) + _run("stride{}_high", 4, 7, 0, 4)),
    *(_run("dim{}", 5, 8, 0, 32) + _run("element_stride{}", 5, 13, 0, 3)),
    *(MapField("box0", 440, 8), MapField("box_bytes", 512, 32), MapField("alignment", 576, 32)),
)
PASSED_OVER: Final = (MapField("always in CuTe DSL", 65, 1), MapField("large in CuTe DSL", 85, 1), MapField("notes", 512, 512))
_BY_CODE: Final = {(dtype.code, dtype.tf32): dtype for dtype in DTYPES.values()}
_PACKED, _PACKED_IN_PTX = 11, 13  # in the map, in tensormap.replace.elemtype
TILED: Final = _run("box{}", 5, 13, 24, 8)[1:]
PIXELS: Final = MapField("pixels", 480, 10)


def im2col_fields(rank: int) -> tuple[MapField, ...]:
    """The fields that only im2col maps of a rank have."""
    count, width = rank - 2, CORNER_WIDTHS[rank]
    return (*_run("lower{}", count, 14, 0, width), *_run("upper{}", count, 14, 16, width), PIXELS)


def constants() -> list[MapField]:
    """Every field under a name of its own, for a C++ header: those of im2col corners are `lower0_rank4` and so on."""
    corners = [MapField(f"{f.name}_rank{rank}", f.offset, f.width) for rank in CORNER_WIDTHS for f in im2col_fields(rank) if f != PIXELS]
    return [*COMMON, *TILED, PIXELS, *corners]


# --- encoding -----------------------------------------------------------------------------------------------------------


def encode_tiled(
    dtype: str,
    address: int,
    dims: Sequence[int],
    strides: Sequence[int],
    box: Sequence[int],
    *,
    element_strides: Sequence[int] | None = None,
    interleave: int = 0,
    swizzle: int = 0,
    l2: int = 0,
    oob: str = "zero",
) -> bytes:
    """The bytes that cuTensorMapEncodeTiled writes."""
    steps = tuple(element_strides or (1,) * len(dims))
    return encode(TensorMapInfo(dtype, address, tuple(dims), tuple(strides), tuple(box), steps, interleave, swizzle, l2, oob))


def encode_im2col(
    dtype: str,
    address: int,
    dims: Sequence[int],
    strides: Sequence[int],
    lower: Sequence[int],
    upper: Sequence[int],
    channels: int,
    pixels: int,
    *,
    element_strides: Sequence[int] | None = None,
    interleave: int = 0,
    swizzle: int = 0,
    l2: int = 0,
    oob: str = "zero",
) -> bytes:
    """The bytes that cuTensorMapEncodeIm2col writes."""
    steps = tuple(element_strides or (1,) * len(dims))
    corners = (tuple(lower), tuple(upper))
    return encode(
        TensorMapInfo(
            dtype, address, tuple(dims), tuple(strides), (), steps, interleave, swizzle, l2, oob, True, *corners, channels, pixels
        )
    )


def encode(info: TensorMapInfo) -> bytes:
    """The bytes of a map, once the driver's rules hold."""
    validate(info)
    values = _common_values(info)
    fields = COMMON
    if info.im2col:
        fields += im2col_fields(info.rank)
        values |= {"box0": info.channels - 1, "pixels": info.pixels - 1}
        values |= _numbered("lower{}", info.lower) | _numbered("upper{}", info.upper)
    else:
        fields += TILED
        values |= _numbered("box{}", [extent - 1 for extent in info.box])
    return pack(values, fields)


def _numbered(name: str, values: Sequence[int]) -> dict[str, int]:
    return {name.format(k): value for k, value in enumerate(values)}


def _common_values(info: TensorMapInfo) -> dict[str, int]:
    dtype = DTYPES[info.dtype]
    return {
        "address": info.address,
        "im2col": info.im2col,
        "rank": info.rank - 1,
        "dtype": dtype.code,
        "tf32": dtype.tf32,
        "interleave": INTERLEAVES.index(info.interleave),
        "swizzle": SWIZZLES.index(info.swizzle),
        "l2": L2_PROMOTIONS.index(info.l2),
        "oob_nan": OOB_FILLS.index(info.oob),
        "box_bytes": info.noted_bytes,
        "alignment": PERIODS[info.swizzle],
        **_numbered("stride{}", [stride >> 4 & 0xFFFFFFFF for stride in info.strides]),
        **_numbered("stride{}_high", [stride >> 36 for stride in info.strides]),
        **_numbered("dim{}", [extent - 1 for extent in info.dims]),
        **_numbered("element_stride{}", [step - 1 for step in info.element_strides]),
    }


def pack(values: dict[str, int], fields: Sequence[MapField]) -> bytes:
    """Fields that have no value are zero; signed values are cut to the width of their field."""
    bits = 0
    for field in fields:
        bits |= (int(values.get(field.name, 0)) & (1 << field.width) - 1) << field.offset
    return bits.to_bytes(NBYTES, "little")


# --- decoding -----------------------------------------------------------------------------------------------------------


def decode(data: bytes) -> TensorMapInfo:
    """The description that the bytes of a map encode. TensorMapError where a bit is set that no field explains.

    Maps built by tensormap.replace need not be what the driver would write, so the driver's own notes are not looked at.
    """
    if len(data) != NBYTES:
        raise TensorMapError(f"tensor map: {len(data)} bytes, expected {NBYTES}")
    bits = int.from_bytes(data, "little")
    value = {field.name: field.get(bits) for field in COMMON}
    rank, im2col = value["rank"] + 1, bool(value["im2col"])
    if rank > 5 or (im2col and rank < 3):
        raise TensorMapError(f"tensor map: {rank} dimensions")
    _refuse_unknown(bits, COMMON + (im2col_fields(rank) if im2col else TILED))
    packed = 2 if value["dtype"] == _PACKED and not im2col else 1
    known = _BY_CODE.get((value["dtype"], bool(value["tf32"])))
    dtype = PACKED if packed > 1 else known.name if known is not None else None
    if dtype is None or value["interleave"] == 3:
        raise TensorMapError(f"tensor map: element type {value['dtype']}, interleave {value['interleave']}")
    strides = tuple((value[f"stride{k}"] | value[f"stride{k}_high"] << 32) << 4 for k in range(rank - 1))
    return TensorMapInfo(
        dtype,
        value["address"],
        ((value["dim0"] + packed) // packed, *(value[f"dim{k}"] + 1 for k in range(1, rank))),
        strides,
        () if im2col else ((value["box0"] + 1) // packed, *(field.get(bits) + 1 for field in TILED[: rank - 1])),
        tuple(value[f"element_stride{k}"] + 1 for k in range(rank)),
        INTERLEAVES[value["interleave"]],
        SWIZZLES[value["swizzle"]],
        L2_PROMOTIONS[value["l2"]],
        OOB_FILLS[value["oob_nan"]],
        *(_im2col_part(bits, rank, value["box0"]) if im2col else ()),
    )


def _refuse_unknown(bits: int, fields: Sequence[MapField]) -> None:
    unknown = bits
    for field in (*fields, *PASSED_OVER):
        unknown &= ~((1 << field.width) - 1 << field.offset)
    if unknown:
        first = (unknown & -unknown).bit_length() - 1
        raise TensorMapError(f"tensor map: bit {first % 32} of word {first // 32} is set, whose meaning is not known")


def _im2col_part(bits: int, rank: int, box0: int) -> tuple[bool, tuple[int, ...], tuple[int, ...], int, int]:
    count, width = rank - 2, CORNER_WIDTHS[rank]
    corners = [field.get(bits) for field in im2col_fields(rank)[: 2 * count]]
    signed = tuple(value - (value >> width - 1 << width) for value in corners)
    return True, signed[:count], signed[count:], box0 + 1, PIXELS.get(bits) + 1


def replace_field(data: bytes, field: str, value: int, ordinal: int = 0) -> bytes:
    """The map after tensormap.replace.tile.FIELD (PTX ISA, "tensormap.replace"): only the bits of that field change."""
    if field not in _REPLACED:
        raise TensorMapError(f"tensormap.replace.{field} is not known")
    bits = int.from_bytes(data, "little")
    for name, part in _REPLACED[field](value).items():
        where = _NAMED[name.format(ordinal)]
        mask = (1 << where.width) - 1
        bits = bits & ~(mask << where.offset) | (part & mask) << where.offset
    return bits.to_bytes(NBYTES, "little")


def _replaced_dtype(value: int) -> dict[str, int]:
    if value == _PACKED_IN_PTX:
        return {"dtype": _PACKED, "tf32": False}
    found = next((dtype for dtype in DTYPES.values() if dtype.ptx == value), None)
    if found is None:
        raise TensorMapError(f"tensormap.replace.elemtype: {value} is not known")
    return {"dtype": found.code, "tf32": found.tf32}


def _replaced_mode(name: str, values: Sequence[object]) -> Callable[[int], dict[str, int]]:
    def replaced(value: int) -> dict[str, int]:
        if not 0 <= value < len(values):
            raise TensorMapError(f"tensormap.replace: {value} is not known as {name}")
        return {name: value}

    return replaced


_NAMED: Final = {field.name: field for field in (*COMMON, *TILED)}
_REPLACED: Final[dict[str, Callable[[int], dict[str, int]]]] = {
    "global_address": lambda value: {"address": value},
    "rank": lambda value: {"rank": value},
    "box_dim": lambda value: {"box{}": value - 1},
    "global_dim": lambda value: {"dim{}": value - 1},
    "global_stride": lambda value: {"stride{}": value >> 4, "stride{}_high": value >> 36},
    "element_stride": lambda value: {"element_stride{}": value - 1},
    "elemtype": _replaced_dtype,
    "interleave_layout": _replaced_mode("interleave", INTERLEAVES),
    "swizzle_mode": _replaced_mode("swizzle", SWIZZLES),
    "fill_mode": _replaced_mode("oob_nan", OOB_FILLS),
}
