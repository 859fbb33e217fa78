"""The formats of tcgen05 against the reference: descriptors, layouts, and what is illegal."""

from __future__ import annotations

import numpy as np
import pytest
import tcgen05_reference as reference

from consan.backends.cpu.semantics import tcgen05_descriptors as descriptors, tcgen05_layouts as layouts
from consan.backends.cpu.semantics.tcgen05_descriptors import Illegal, ProductForm
from consan.backends.cpu.semantics.tcgen05_product import zero_columns


@pytest.mark.parametrize("mode", [0, 1, 2, 4, 6])
@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("mn_major", [False, True])
@pytest.mark.parametrize("start", [0x400, 0x2460])
def test_chunks_of_operands(mode: int, size: int, mn_major: bool, start: int) -> None:
    layout = reference.Layout(start, 0x1230, 0x2460, mode, mn_major, size)
    operand = descriptors.matrix(layout.descriptor)
    per, rows, depth = 16 // size, 64, 64 // size
    found = descriptors.chunk_addresses(operand, rows, depth if mn_major else depth // per, per, mn_major)
    for row in range(rows):
        for k in range(depth):
            chunk = found[row // per, k] + row % per * size if mn_major else found[row, k // per] + k % per * size
            assert layout.address(row, k) == chunk, (row, k)


@pytest.mark.parametrize(("shape", "count"), [("32x32b", 4), ("16x64b", 4), ("16x128b", 2), ("16x256b", 2), ("16x32bx2", 4)])
def test_fragments(shape: str, count: int) -> None:
    rows, columns = layouts.fragment(shape, count)
    for lane in range(32):
        for register in range(layouts.registers(shape, count)):
            assert (rows[lane, register], columns[lane, register]) == reference.ld_cell(shape, lane, register)


@pytest.mark.parametrize("shape", ["128x256b", "128x128b", "4x256b", "64x128b.warpx2::02_13", "64x128b.warpx2::01_23", "32x128b.warpx4"])
def test_lanes_of_copies(shape: str) -> None:
    size, _, warps = shape.partition(".")
    found = layouts.copied_lanes(size, warps)
    assert found.tolist() == [reference.cp_lanes(shape, row) for row in range(len(found))]


FORMS = [
    *((m, n, 1, False, False) for m in (64, 128) for n in (8, 96, 256)),
    *((m, n, 2, False, sparse) for m in (128, 256) for n in (32, 256) for sparse in (False, True)),
    *((m, n, 1, True, False) for m in (32, 64, 128) for n in (64, 256)),
]


@pytest.mark.parametrize(("m", "n", "group", "ws", "sparse"), FORMS)
def test_accumulators(m: int, n: int, group: int, ws: bool, sparse: bool) -> None:
    form = ProductForm("f16", group == 2, ws, sparse)
    found = descriptors.product(reference.plain("f32", "f16", "f16", m, n, sparse=sparse), form)
    cells = {}
    for block in layouts.blocks(found):
        for i, lane in enumerate(block.lanes.tolist()):
            row = block.cta * (m // group) + block.row + i
            cells.update({(row, block.column + j): (block.cta, lane, j) for j in range(block.columns)})
    assert cells == {(i, j): reference.d_cell((m, n), i, j, group, ws=ws, sparse=sparse) for i in range(m) for j in range(n)}


@pytest.mark.parametrize(("m", "n", "group"), [(128, 256, 1), (256, 64, 2), (128, 128, 2)])
def test_scale_factors(m: int, n: int, group: int) -> None:
    """Each block reads the copy in its own quarter of the lanes."""
    split = group == 2 and m == 128
    found = descriptors.product(reference.scaled("e4m3", "e4m3", m, n), ProductForm("mxf8f6f4", group == 2, False, False))
    for block in layouts.blocks(found):
        quarter = int(block.lanes[0]) // 32
        (lane_a, column_a), (lane_b, column_b) = layouts.factor_words(block, split)
        for i in range(len(block.lanes)):
            assert (lane_a[i], column_a[i], 0) == reference.factor_cells(block.row + i, 0)[quarter]
        for j in range(block.columns):
            copies = reference.factor_cells(block.column + j, 0, split=split, rows=n)
            assert (lane_b[j], column_b[j], 0) in copies
            assert lane_b[j] // 32 == quarter


@pytest.mark.parametrize("kind", ["f16", "tf32", "f8f6f4", "mxf4"])
def test_metadata(kind: str) -> None:
    word = {"f16": "f16", "tf32": "tf32"}.get(kind, "e4m3")
    packed = kind == "mxf4"
    idesc = reference.scaled("", "", 128, 64, packed=True, sparse=1) if packed else reference.plain("f32", word, word, 128, 64, sparse=1)
    found = descriptors.product(idesc, ProductForm(kind, False, False, True))
    block = layouts.blocks(found)[0]
    lane, column, bit = layouts.metadata(found, block)
    for i, row in enumerate(range(block.row, block.row + len(block.lanes))):
        for chunk in range(lane.shape[1]):
            assert (lane[i, chunk], column[i, chunk], bit[i, chunk] // 4) == reference.meta_cell(kind, row, chunk)


REAL = [
    (0x8210010, ProductForm("f16", False, False, False), {"m": 128, "n": 128, "a": "f16", "d": "f32", "mn_major_b": True}),
    (0x8210490, ProductForm("f16", False, False, False), {"a": "bf16", "b": "bf16"}),
    (0x4110010, ProductForm("f16", False, False, False), {"m": 64, "n": 64}),
    (0x10200490, ProductForm("f16", True, False, False), {"m": 256, "n": 128, "mn_major_b": False}),
    (0x8200910, ProductForm("tf32", False, False, False), {"a": "tf32", "k": 8, "n": 128}),
    (0x82104A0, ProductForm("i8", False, False, False), {"a": "s8", "b": "s8", "d": "s32", "k": 32}),
    (0x8200010, ProductForm("f8f6f4", False, False, False), {"a": "e4m3", "k": 32}),
    (
        0x68C00030,
        ProductForm("mxf8f6f4", False, False, False),
        {"m": 128, "n": 256, "first_a": 3, "first_b": 3, "element": "ue8m0", "count": 1},
    ),
    (0x8C004A0, ProductForm("mxf4", False, False, False, "block32"), {"first_b": 2, "a": "e2m1", "b": "e2m1", "count": 2, "k": 64}),
    (0x8400480, ProductForm("mxf4nvf4", False, False, False, "block16"), {"element": "ue4m3", "n": 256, "count": 4}),
    (0x10A00000, ProductForm("mxf8f6f4", True, False, False, "block32"), {"m": 256, "n": 128}),
]


@pytest.mark.parametrize(("word", "form", "fields"), REAL, ids=[hex(word) for word, _, _ in REAL])
def test_instruction_descriptors_of_real_programs(word: int, form: ProductForm, fields: dict[str, object]) -> None:
    product = descriptors.product(word, form)
    found = {**vars(product), **vars(product.scales)} if product.scales else vars(product)
    assert {name: found[name] for name in fields} == fields


def _form(kind: str, group: int = 1, vector: str | None = None, **more: bool) -> ProductForm:
    return ProductForm(kind, group == 2, more.get("ws", False), more.get("sparse", False), vector)


F16 = reference.plain("f32", "f16", "f16", 128, 128)
ILLEGAL = [
    (F16 | 1 << 6, _form("f16"), r"a reserved field \(bit 6\) is 1; .*allows 0"),
    (reference.plain("f32", "f16", "f16", 128, 0), _form("f16"), r"N \(bits 17-22\) is 0; .* 8 to 256 in steps of 8"),
    (reference.plain("f32", "f16", "f16", 128, 24), _form("f16", 2), r"N .* is 24; .kind::f16 with .cta_group::2 allows 16 to 256"),
    (reference.plain("f32", "f16", "f16", 256, 128), _form("f16"), r"M \(bits 24-28\) is 256; .* allows 64, 128"),
    (reference.plain("f32", "f16", "f16", 64, 128), _form("f16", 2), r"M \(bits 24-28\) is 64; .* allows 128, 256"),
    (reference.plain("f32", "f16", "f16", 64, 96), _form("f16", ws=True), r"N .* is 96; .*\.ws allows 64, 128, 256"),
    (reference.plain("f32", "f16", "f16", 64, 256, sparse=1), _form("f16", ws=True, sparse=True), r"N .* allows 64, 128$"),
    (reference.plain("s32", "s8", "s8", 128, 40), _form("i8"), r"N .* is 40; .* 8, 16, 24, 32, 48,"),
    (F16 & ~(3 << 4) | 2 << 4, _form("f16"), r"the type of D \(bits 4-5\) is 2; .* 0 \(f16\), 1 \(f32\)"),
    (reference.plain("f16", "bf16", "bf16", 128, 128), _form("f16"), r"the type of D .*f32.* with A of bf16"),
    (F16 | 1 << 2, _form("f16"), r"sparsity \(bit 2\) is 1; .* as the opcode has no .sp"),
    (F16 | 1 << 3, _form("f16"), r"saturate \(bit 3\) is 1"),
    (reference.plain("s32", "s8", "s8", 128, 32, negate=1), _form("i8"), r"negate A \(bit 13\) is 1"),
    (reference.plain("f32", "e2m1", "e4m3", 128, 32, major=(1, 0)), _form("f8f6f4"), r"transpose A \(bit 15\) is 1; .* 0 for e2m1"),
    (reference.plain("f32", "e4m3", "e4m3", 128, 24, major=(0, 1)), _form("f8f6f4"), r"N .* is 24; .* 16 to 256 in steps of 16"),
    (F16 | 7 << 7, _form("f16"), r"the type of A \(bits 7-9\) is 7; .* 0 \(f16\), 1 \(bf16\)"),
    (reference.scaled("e4m3", "e4m3", 128, 64, scale="ue4m3"), _form("mxf8f6f4"), r"the type of the scale factors \(bit 23\) is 0"),
    (reference.scaled("", "", 128, 64, packed=True, ids=(1, 0)), _form("mxf4"), r"id of A \(bits 29-30\) is 1; .*\(byte 0\), 2"),
    (reference.scaled("", "", 128, 64, packed=True) | 1 << 31, _form("mxf4"), r"K dimension \(bit 31\) .*sm_103a"),
    (reference.scaled("", "", 128, 64, packed=True), _form("mxf4nvf4"), r".kind::mxf4nvf4 takes one of .*block16"),
    (reference.scaled("e4m3", "e4m3", 128, 64, sparse=1), _form("mxf8f6f4", 2, sparse=True), r"M \(bits 27-28\) is 128; .* allows 256"),
]


@pytest.mark.parametrize(("word", "form", "message"), ILLEGAL, ids=[str(i) for i in range(len(ILLEGAL))])
def test_an_illegal_instruction_descriptor_names_the_field_and_what_is_allowed(word: int, form: ProductForm, message: str) -> None:
    with pytest.raises(Illegal, match=message):
        descriptors.product(word, form)


@pytest.mark.parametrize(
    ("change", "message"),
    [(3 << 61, "swizzling mode .* is 3; allowed: 0, 1, 2, 4, 6"), (1 << 47, "bits 46-48 must be 0b001"), (1 << 52, "sm_103a")],
)
def test_an_illegal_shared_memory_descriptor_names_the_field(change: int, message: str) -> None:
    with pytest.raises(Illegal, match=message):
        descriptors.matrix(1 << 46 | 64 | change)


def test_a_descriptor_of_mosaic_gpu_names_the_same_matrix() -> None:
    """Pallas's matmul on Blackwell: swizzle of 128 bytes, bits 46 to 48 zero. The ISA asks for 0b001; hardware takes both."""
    found = descriptors.matrix(0x4000_0040_0001_0040)
    assert found == descriptors.matrix(0x4000_0040_0001_0040 | 1 << 46)
    assert (found.start, found.leading, found.stride, found.mode) == (1024, 16, 1024, 2)


@pytest.mark.parametrize(("m", "most"), [(32, 16), (64, 32)])
def test_a_mask_shifts_columns_by_so_many_at_most(m: int, most: int) -> None:
    found = descriptors.product(reference.plain("f32", "f16", "f16", m, 64), _form("f16", ws=True))
    assert descriptors.column_shift(most << 56, found) == most
    with pytest.raises(Illegal, match=rf"column shift \(bits 56-61\) is {most + 1}; M = {m} allows up to {most}"):
        descriptors.column_shift(most + 1 << 56, found)


def test_zero_column_masks_are_those_of_the_examples() -> None:
    def mask(m: int, counts: tuple[int, ...], spans: tuple[int, ...], shift: int = 0) -> list[str]:
        fields = sum(count << 8 * i for i, count in enumerate(counts)) | sum(first << 32 + i for i, first in enumerate(spans))
        word = fields | 1 << 39 | 2 << 40 | 3 << 48 | shift << 56
        found = zero_columns(word, m, 64).reshape(128 // m, -1)
        return ["".join("01"[bit] for bit in part[::-1].astype(int)) for part in found]

    assert mask(128, (0,), (0,))[0].endswith("11100001110000")
    assert [part[-17:] for part in mask(64, (0, 0), (1, 0))] == ["11100001110000111", "00011100001110000"]
    ends = zip(mask(32, (0, 1, 2, 1), (1, 1, 0, 0), 2), ["00001110000111", "0000111000011", "111000011100", "1110000111000"], strict=True)
    assert all(part.endswith(end) for part, end in ends)
    assert not np.any(zero_columns(2 << 40 | 3 << 48, 128, 64)), "without Non-Zero Mask"
