"""Tensor maps: our bits are the driver's, for what it encoded and for what it refused; the table decodes them again."""

from __future__ import annotations

import ctypes
import random
from dataclasses import asdict
from typing import Any

import pytest
from tensormap_records import data, encoded, expected, records

from consan._errors import UsageError
from consan.backends.driver import Driver
from consan.backends.tensormap import encode_with_driver
from consan.tensormap.description import DTYPES, NBYTES, SWIZZLES
from consan.tensormap.encoding import (
    TILED,
    MapField,
    TensorMapError,
    constants,
    decode,
    encode,
    encode_im2col,
    encode_tiled,
    im2col_fields,
    replace_field,
)
from consan.tensormap.rules import CORNER_WIDTHS

RECORDS = records()
VALID = [record for record in RECORDS if not record["rc"]]
REFUSED = [record for record in RECORDS if record["rc"]]


def _name(record: dict[str, Any]) -> str:
    return f"{record['kind']}-{record['rank']}d-type{record['dtype']}-sw{record['sw']}-il{record['il']}"


@pytest.mark.parametrize("record", VALID, ids=_name)
def test_the_bits_are_the_drivers(record: dict[str, Any]) -> None:
    assert encoded(record).hex() == data(record).hex()
    assert asdict(decode(data(record))) == expected(record)


@pytest.mark.parametrize("record", REFUSED, ids=_name)
def test_what_the_driver_refuses_is_refused(record: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"^tensor map: [^\n]*$"):
        encoded(record)


def test_the_records_cover_what_there_is() -> None:
    assert {record["dtype"] for record in VALID} == {dtype.driver for dtype in DTYPES.values()}
    assert {(record["rank"], record["sw"]) for record in VALID if record["kind"] == "tiled"} >= {
        (r, s) for r in range(1, 6) for s in range(4)
    }
    assert {record["rank"] for record in VALID if record["kind"] == "im2col"} == set(CORNER_WIDTHS)
    assert {record["il"] for record in VALID} == {0, 1, 2}
    assert len(REFUSED) >= 10


def tiled(**changes: Any) -> bytes:
    values = {"dtype": "f16", "address": 1 << 40, "dims": (1024, 512), "strides": (2048,), "box": (64, 32)} | changes
    return encode_tiled(**values)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dtype": "f8"}, "element type 'f8'"),
        ({"address": 8}, "address 0x8: expected a multiple of 16"),
        ({"dims": (1024, 0)}, "expected 1 to 2^32 elements"),
        ({"dims": (1,) * 6, "strides": (16,) * 5, "box": (8,) * 6}, "6 dimensions: expected 1 to 5"),
        ({"strides": (2056,)}, "multiples of 16"),
        ({"strides": (1 << 40,)}, "less than 2^40"),
        ({"strides": ()}, "expected one for each dimension but the innermost"),
        ({"box": (64,)}, "one size for each of 2 dimensions"),
        ({"box": (64, 257)}, "sizes of 1 to 256"),
        ({"box": (7, 1)}, "14 bytes of the box are no multiple of 16"),
        ({"swizzle": 64}, "128 bytes of the box are more than swizzle 64"),
        ({"swizzle": 96}, "swizzle 96"),
        ({"element_strides": (1, 9)}, "element strides"),
        ({"interleave": 16}, "interleaved and im2col tensors have 3 to 5"),
        ({"oob": "nan", "dtype": "u16"}, "out-of-bounds NaN: u16 has none"),
        ({"l2": 32}, "l2 promotion 32"),
    ],
)
def test_each_rule_has_a_line(changes: dict[str, Any], message: str) -> None:
    assert len(tiled()) == NBYTES
    with pytest.raises(UsageError) as caught:
        tiled(**changes)
    assert message in str(caught.value)


def test_im2col_corners_must_fit() -> None:
    shape = ((64, 9, 14, 14, 8), (128, 1152, 16128, 225792))
    assert decode(encode_im2col("f16", 0, *shape, (-16, 0, 10), (0, -5, 1), 16, 64)).lower == (-16, 0, 10)
    with pytest.raises(UsageError, match="beyond what a tensor of 5 dimensions"):
        encode_im2col("f16", 0, *shape, (-17, 0, 0), (0, 0, 0), 16, 64)
    with pytest.raises(UsageError, match="leave no pixel"):
        encode_im2col("f16", 0, *shape, (0, 0, 0), (-9, 0, 0), 16, 64)


def test_no_two_fields_share_a_bit() -> None:
    common = [field for field in constants() if "_rank" not in field.name and field not in TILED and field.name != "pixels"]
    for special in (TILED, *(im2col_fields(rank) for rank in CORNER_WIDTHS)):
        used = [bit for field in (*common, *special) for bit in range(field.offset, field.offset + field.width)]
        assert len(used) == len(set(used))
    names = [field.name for field in constants()]
    assert len(names) == len(set(names))
    assert MapField("x", 95, 2).word == 2
    assert MapField("x", 95, 2).shift == 31


@pytest.mark.parametrize("kind", ["tiled", "im2col"])
def test_unknown_bits_are_refused_and_known_ones_never_ignored(kind: str) -> None:
    """Flip each bit: the map is refused, or says something else, or the bit is one of the driver's own notes."""
    original = next(data(record) for record in VALID if record["kind"] == kind and record["rank"] == 5)
    unknown = 0
    for bit in range(8 * NBYTES):
        changed = (int.from_bytes(original, "little") ^ 1 << bit).to_bytes(NBYTES, "little")
        try:
            same = decode(changed) == decode(original)
        except TensorMapError:
            unknown += 1
            continue
        assert same == (bit // 32 >= 16 or bit in (65, 85)), f"bit {bit % 32} of word {bit // 32}"
    assert unknown > 40


# The map that CuTe DSL 4.8.1 encoded for a row-major f16 tensor, its box of 64 x 64 and a swizzle of 128 bytes; its end was on the stack.
CUTE = "126304000900000000000000000000000000000000000000470000002b0100000000000000000000000000000000003f3f00000000000000"
CUTE_LARGE = "126324007c92000000000000000000000000000000000000df930400ff1f00000000000000000000000000000000003f3f00000000000000"
STACK = "1800000000000000d8cd9528007f000000e88428007f0000e0bb6532007f00000000000000000000af694732007f0000000000000000000000dd3e41415fa19e"


@pytest.mark.parametrize(("words", "dims"), [(CUTE, (72, 300)), (CUTE_LARGE, (300000, 8192))])
def test_maps_of_cute_dsl_are_read(words: str, dims: tuple[int, ...]) -> None:
    found = decode(bytes.fromhex("00100000007f0000" + words + STACK))
    own = tiled(address=0x7F0000001000, dims=dims, strides=(2 * dims[0],), box=(64, 64), swizzle=128, l2=128)
    assert found == decode(own)


# The map that it encoded for a row-major Int4 tensor of 128 x 128, its box of 128 x 128 and a swizzle of 64 bytes.
CUTE_PACKED = "a245040004000000000200000000000000000000000000007f0000007f0000000000000000000000000000000000007f7f00000000000000"


def test_a_map_of_packed_elements_is_read_as_one_of_bytes() -> None:
    found = decode(bytes.fromhex("00100000007f0000" + CUTE_PACKED + STACK))
    assert (found.dtype, found.dims, found.strides, found.box, found.packed) == ("b4x16", (64, 128, 1), (64, 8192), (64, 128, 1), 2)
    assert (found.swizzle, found.box_bytes) == (64, 8192)
    assert decode(replace_field(tiled(dtype="u8", box=(64, 64)), "elemtype", 13)).packed == 2


def test_sizes_are_not_bytes_of_something_else() -> None:
    with pytest.raises(TensorMapError, match="127 bytes"):
        decode(bytes(127))


def test_counts_follow_the_driver_manual() -> None:
    """ceil(box / element stride) along each dimension, the innermost step ignored without interleaving."""
    info = decode(tiled(box=(64, 7), element_strides=(3, 2)))
    assert info.counts == (64, 4)
    assert info.box_bytes == 64 * 4 * 2


def test_replace_changes_only_its_field() -> None:
    """Every field, one after the other, from an empty map: what the driver would have written, but for its notes."""
    wanted = decode(tiled(dims=(1000, 700, 3), strides=(1 << 37, 1 << 39), box=(64, 7, 2), swizzle=128, oob="nan", dtype="bf16"))
    data = bytes(NBYTES)
    for field, ordinal, value in [
        *(("global_address", 0, wanted.address), ("rank", 0, 2), ("elemtype", 0, 10), ("swizzle_mode", 0, 3), ("fill_mode", 0, 1)),
        *(("interleave_layout", 0, 0),),
        *(("global_dim", k, extent) for k, extent in enumerate(wanted.dims)),
        *(("global_stride", k, stride) for k, stride in enumerate(wanted.strides)),
        *(("box_dim", k, extent) for k, extent in enumerate(wanted.box)),
        *(("element_stride", k, 1) for k in range(3)),
    ]:
        data = replace_field(data, field, value, ordinal)
    assert decode(data) == wanted
    assert data[:64] == encode(wanted)[:64]
    assert decode(replace_field(data, "elemtype", 11)).dtype == "tf32"
    for field, value in (("elemtype", 14), ("swizzle_mode", 4), ("swizzle_atomicity", 0), ("interleave_layout", 3)):
        with pytest.raises(TensorMapError):
            replace_field(data, field, value)


def test_any_valid_map_survives() -> None:
    chance = random.Random(5)
    for _ in range(300):
        rank = chance.randint(1, 5)
        swizzle = chance.choice(SWIZZLES)
        dtype = chance.choice(sorted(DTYPES))
        inner = 16 * chance.randint(1, (swizzle or 256) // 16) // DTYPES[dtype].nbytes
        box = (inner, *(chance.randint(1, 4) for _ in range(rank - 1)))
        dims = tuple(chance.randint(1, 1 << chance.choice((4, 16, 32))) for _ in range(rank))
        strides = tuple(16 * chance.randrange(1 << chance.choice((8, 36))) for _ in range(rank - 1))
        made = encode_tiled(dtype, 16 * chance.randrange(1 << 43), dims, strides, box, swizzle=swizzle)
        assert (decode(made).dims, decode(made).strides, decode(made).box) == (dims, strides, box)
        assert encode(decode(made)) == made


class FakeLibrary:
    """Takes the driver's arguments apart again and answers with our encoder; what it is given of each kind is kept."""

    refuse = False

    def cuTensorMapEncodeTiled(self, *arguments: Any) -> int:
        return self._answer("tiled", arguments, ("box",))

    def cuTensorMapEncodeIm2col(self, *arguments: Any) -> int:
        return self._answer("im2col", arguments, ("lo", "hi", "ch", "px"))

    def _answer(self, kind: str, arguments: Any, own: tuple[str, ...]) -> int:
        names = ("to", "dtype", "rank", "a", "dims", "strides", *own, "est", "il", "sw", "l2", "oob")
        values = {name: getattr(value, "value", value) for name, value in zip(names, arguments, strict=True)}
        values = {name: list(value) if isinstance(value, ctypes.Array) else value for name, value in values.items()}
        target = values.pop("to")
        assert target % 64 == 0
        ctypes.memmove(target, encoded({"kind": kind, **values, "strides": values["strides"][: values["rank"] - 1]}), NBYTES)
        return int(self.refuse)


@pytest.mark.parametrize("record", VALID[::4], ids=_name)
def test_the_driver_is_asked_for_the_same_map(record: dict[str, Any]) -> None:
    assert encode_with_driver(Driver(FakeLibrary()), decode(data(record))) == data(record)


def test_a_refusal_of_the_driver_is_a_usage_error() -> None:
    library = FakeLibrary()
    library.refuse = True
    with pytest.raises(UsageError, match="the driver refuses TensorMapInfo"):
        encode_with_driver(Driver(library), decode(tiled()))
    with pytest.raises(UsageError, match="the driver has none"):
        encode_with_driver(Driver(object()), decode(tiled()))
