"""tcgen05.mma with scale factors, and with sparse A, on the virtual machine; against NumPy, exact."""

from __future__ import annotations

import numpy as np
import pytest
import tcgen05_reference as reference
from tcgen05_operands import DEPTH, SIZE, Array, Image, Operand, gather, load, mma, numbers_of, store_columns
from tcgen05_support import BASE, SYNC, alloc, commit_and_wait, dealloc, run, save, wait

SFA, SFB = 128, 160  # columns of the allocation
LEADER = "setp.eq.u32 %p8, %rank, 0; and.pred %first, %first, %p8;"
COMMIT = "mov.b16 %h0, 3; @%first tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%bar], %h0;"


class Factors:
    """Scale factors of some rows: their codes and numbers."""

    def __init__(self, rng: np.random.Generator, word: str, rows: int, count: int) -> None:
        if word == "ue8m0":
            self.codes = rng.integers(126, 130, (rows, count))
            self.numbers = np.ldexp(1.0, self.codes - 127)
        else:
            self.codes = rng.choice([0x30, 0x38, 0x3C, 0x40], (rows, count))  # 1/2, 1, 3/2, 2
            self.numbers = reference.values("e4m3", self.codes)

    def store(self, cells: Array, first: int, *, rows: slice = slice(None), split: bool = False) -> None:
        """Put them into cells [128, columns]."""
        octets, codes = cells.view(np.uint8).reshape(128, -1, 4), self.codes[rows]
        for row in range(len(codes)):
            for j in range(codes.shape[1]):
                for cell in reference.factor_cells(row, j, first, split=split, rows=len(codes)):
                    octets[cell] = codes[row, j]


def expected(a: Operand, b: Operand, of_a: Factors, of_b: Factors) -> Array:
    wide = a.numbers.shape[1] // of_a.numbers.shape[1]
    left, right = (x.numbers * np.repeat(f.numbers, wide, axis=1) for x, f in ((a, of_a), (b, of_b)))
    return np.asarray(left @ right.T)


KINDS = [
    ("mxf8f6f4", "e4m3", "e5m2", "ue8m0", "block32", 1, (0, 3)),
    ("mxf8f6f4", "e2m1", "e3m2", "ue8m0", "scale_vec::1X", 1, (2, 1)),
    ("mxf8f6f4", "e2m3", "e4m3", "ue8m0", "", 1, (1, 0)),
    ("mxf4", "e2m1", "e2m1", "ue8m0", "block32", 2, (0, 2)),
    ("mxf4nvf4", "e2m1", "e2m1", "ue8m0", "scale_vec::2X", 2, (2, 0)),
    ("mxf4nvf4", "e2m1", "e2m1", "ue4m3", "block16", 4, (0, 0)),
    ("mxf4nvf4", "e2m1", "e2m1", "ue8m0", "scale_vec::4X", 4, (0, 0)),
]


@pytest.mark.parametrize(("kind", "a_type", "b_type", "scale", "vector", "count", "ids"), KINDS)
def test_scale_factors(kind: str, a_type: str, b_type: str, scale: str, vector: str, count: int, ids: tuple[int, int]) -> None:
    m, n, rng, packed = 128, 96, np.random.default_rng(count), kind != "mxf8f6f4"
    a, b = (Operand.random(rng, word, (rows, DEPTH[kind]), packed=packed) for word, rows in ((a_type, m), (b_type, n)))
    of_a, of_b = Factors(rng, scale, m, count), Factors(rng, scale, n, count)
    image, cells = Image(), np.full((2, 128, 8), 0x7F7F7F7F, np.uint32)
    of_a.store(cells[0], ids[0])
    of_b.store(cells[1], ids[1])
    descs = image.place(0, a, 2), image.place(1, b, 0)
    image.raw[2 * SIZE : 2 * SIZE + 8192] = cells.reshape(-1).view(np.uint8)
    text = f"add.u32 %r50, %t, {SFA}; add.u32 %r51, %t, {SFB};"
    text += store_columns("%r50", 8, 2 * SIZE) + store_columns("%r51", 8, 2 * SIZE + 4096)
    text += load(*descs, reference.scaled(a_type, b_type, m, n, ids=ids, scale=scale, packed=packed))
    qualifier = f".block_scale{'.' + vector if vector else ''}"
    text += mma(f".cta_group::1.kind::{kind}{qualifier}", tail="", keep="[%r50], [%r51], %keep")
    found = run(alloc(256) + text + commit_and_wait() + save(128) + dealloc(256), image.raw, 128 * 128).reshape(128, 128)
    np.testing.assert_array_equal(numbers_of("f32", found[:, :n]), expected(a, b, of_a, of_b))


def test_scale_factors_that_a_copy_brings() -> None:
    """The source of 32x128b.warpx4 holds blocks of 128 rows x 4 factors: row r at (r % 32) * 16 + (r / 32) * 4 (cuBLAS's 128x4 layout)."""
    m, n, rng = 128, 64, np.random.default_rng(3)
    a, b = (Operand.random(rng, "e4m3", (rows, 32)) for rows in (m, n))
    of_a, of_b = Factors(rng, "ue8m0", m, 4), Factors(rng, "ue8m0", 128, 4)
    image = Image()
    descs = image.place(0, a, 2), image.place(1, b, 2)
    for factors, at in ((of_a, 2 * SIZE), (of_b, 2 * SIZE + 512)):
        row, j = np.divmod(np.arange(512), 4)
        image.raw[at + row % 32 * 16 + row // 32 * 4 + j] = factors.codes.reshape(-1)
    source = reference.Layout(BASE + 2 * SIZE, 0, 128, 0, False, 1).descriptor
    text = f"add.u32 %r50, %t, {SFA}; add.u32 %r51, %t, {SFB}; mov.b64 %rd12, {source}; mov.b64 %rd13, {source + 32};"
    text += "@%first tcgen05.cp.cta_group::1.32x128b.warpx4 [%r50], %rd12; @%first tcgen05.cp.cta_group::1.32x128b.warpx4 [%r51], %rd13;"
    total = np.zeros((m, n))
    for step in range(4):  # the same operands, each time with the factors of another k step
        text += load(*descs, reference.scaled("e4m3", "e4m3", m, n, ids=(step, step)))
        text += mma(".cta_group::1.kind::mxf8f6f4.block_scale.block32", keep=f"[%r50], [%r51], {int(step > 0)}")
        total += (a.numbers * of_a.numbers[:, [step]]) @ (b.numbers * of_b.numbers[:n, [step]]).T
    found = run(alloc(256) + text + commit_and_wait() + save(64) + dealloc(256), image.raw, 128 * 64).reshape(128, 64)
    np.testing.assert_array_equal(numbers_of("f32", found), total)


@pytest.mark.parametrize("m", [128, 256])
def test_scale_factors_of_a_pair(m: int) -> None:
    """Each CTA has the factors of its own rows of A and of all columns of B. M = 128: half of the lanes has those of half the columns."""
    n, rng = 64, np.random.default_rng(m)
    a, b = (Operand.random(rng, "e4m3", (rows, 32)) for rows in (m, n))
    of_a, of_b = Factors(rng, "ue8m0", m, 1), Factors(rng, "ue8m0", n, 1)
    images = [Image(), Image()]
    for cta, image in enumerate(images):
        cells, half = np.full((2, 128, 8), 0x7F7F7F7F, np.uint32), slice(cta * m // 2, (cta + 1) * m // 2)
        of_a.store(cells[0], 0, rows=half)
        of_b.store(cells[1], 0, split=m == 128)
        parts = [Operand(x.word, x.numbers, np.split(x.octets, 2)[cta], 1) for x in (a, b)]
        descs = image.place(0, parts[0], 2), image.place(1, parts[1], 2)
        image.raw[2 * SIZE : 2 * SIZE + 8192] = cells.reshape(-1).view(np.uint8)
    text = f"add.u32 %r50, %t, {SFA}; add.u32 %r51, %t, {SFB};"
    text += store_columns("%r50", 8, 2 * SIZE) + store_columns("%r51", 8, 2 * SIZE + 4096)
    text += SYNC + load(*descs, reference.scaled("e4m3", "e4m3", m, n))
    text += LEADER + mma(".cta_group::2.kind::mxf8f6f4.block_scale.block32", keep="[%r50], [%r51], %keep") + COMMIT + wait(0)
    raw = np.concatenate([image.raw for image in images])
    found = run(alloc(256, 2) + text + save(64) + dealloc(256, 2), raw, 2 * 128 * 64, grid=2, cluster=2).reshape(2, 128, 64)
    np.testing.assert_array_equal(numbers_of("f32", gather(found, m, n, 2)), expected(a, b, of_a, of_b))


# Sparse A ----------------------------------------------------------------------------------------------------------------------

PAIRS = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def sparse(rng: np.random.Generator, kind: str, a: Operand) -> tuple[Array, Array]:
    """Dense numbers [M, K] of a stored A [M, K / 2], and the 4-bit index of each chunk [M, chunks]."""
    m, stored = a.numbers.shape
    size = {"tf32": 2, "mxf4": 8, "mxf4nvf4": 8}.get(kind, 4)
    chunks, unit = 2 * stored // size, max(1, size // 4)
    dense, index = np.zeros((m, chunks, size)), np.zeros((m, chunks), np.uint32)
    values = a.numbers.reshape(m, chunks, size // 2)
    for row in range(m):
        for chunk in range(chunks):
            if kind == "tf32":
                place = int(rng.integers(2))
                dense[row, chunk, place], index[row, chunk] = values[row, chunk, 0], (0b0100, 0b1110)[place]
                continue
            first, second = PAIRS[rng.integers(6)]
            for k, place in enumerate((first, second)):
                dense[row, chunk, place * unit : (place + 1) * unit] = values[row, chunk, k * unit : (k + 1) * unit]
            index[row, chunk] = first | second << 2
    return dense.reshape(m, -1), index


def metadata(kind: str, index: Array) -> Array:
    """Words [128, 8] that hold the indices of M = 128 rows."""
    words = np.zeros((128, 8), np.uint32)
    for row, chunk in np.ndindex(index.shape):
        lane, column, nibble = reference.meta_cell(kind, row, chunk)
        words[lane, column] |= index[row, chunk] << np.uint32(4 * nibble)
    return words


SPARSE = [
    *(("f16", "f16", "f32", "", 0), ("f16", "bf16", "f32", ".ws", 0), ("tf32", "tf32", "f32", "", 0)),
    *(("f8f6f4", "e4m3", "f32", "", 0), ("i8", "s8", "s32", "", 0)),
    *(("f16", "f16", "f32", "", 1), ("tf32", "tf32", "f32", "", 1)),  # the selector: the second column of two
]


@pytest.mark.parametrize(("kind", "word", "d", "ws", "selector"), SPARSE)
def test_sparse_products(kind: str, word: str, d: str, ws: str, selector: int) -> None:
    m, n, rng = 128, 64, np.random.default_rng(9)
    a, b = Operand.random(rng, word, (m, DEPTH[kind])), Operand.random(rng, word, (n, 2 * DEPTH[kind]))
    dense, index = sparse(rng, kind, a)
    image = Image()
    descs = image.place(0, a, 6), image.place(1, b, 4)
    image.raw[2 * SIZE : 2 * SIZE + 4096] = np.roll(metadata(kind, index), selector, axis=1).reshape(-1).view(np.uint8)
    text = f"add.u32 %r50, %t, {SFA};" + store_columns("%r50", 8, 2 * SIZE)
    text += load(*descs, reference.plain(d, word, word, m, n, sparse=1) | selector)
    text += mma(f"{ws}.sp.cta_group::1.kind::{kind}", meta="[%r50], ")
    found = run(alloc(256) + text + commit_and_wait() + save(64) + dealloc(256), image.raw, 128 * 64).reshape(128, 64)
    np.testing.assert_array_equal(numbers_of(d, found), dense @ b.numbers.T)


def test_sparse_products_with_scale_factors() -> None:
    """Kind mxf4: K = 128, pairs of elements; the factors are those of dense rows."""
    m, n, rng = 128, 64, np.random.default_rng(11)
    a, b = Operand.random(rng, "e2m1", (m, 64), packed=True), Operand.random(rng, "e2m1", (n, 128), packed=True)
    dense, index = sparse(rng, "mxf4", a)
    of_a, of_b = Factors(rng, "ue8m0", m, 2), Factors(rng, "ue8m0", n, 2)
    image, cells = Image(), np.zeros((3, 128, 8), np.uint32)
    of_a.store(cells[0], 0)
    of_b.store(cells[1], 0)
    cells[2] = metadata("mxf4", index)
    descs = image.place(0, a, 2), image.place(1, b, 2)
    image.raw[2 * SIZE : 2 * SIZE + 12288] = cells.reshape(-1).view(np.uint8)
    text = f"add.u32 %r50, %t, {SFA}; add.u32 %r51, %t, {SFB}; add.u32 %r52, %t, 192;"
    text += "".join(store_columns(f"%r{50 + i}", 8, 2 * SIZE + 4096 * i) for i in range(3))
    text += load(*descs, reference.scaled("", "", m, n, packed=True, sparse=1))
    text += mma(".sp.cta_group::1.kind::mxf4.block_scale.block32", meta="[%r52], ", keep="[%r50], [%r51], %keep")
    found = run(alloc(256) + text + commit_and_wait() + save(64) + dealloc(256), image.raw, 128 * 64).reshape(128, 64)
    np.testing.assert_array_equal(numbers_of("f32", found), expected(Operand("e2m1", dense, a.octets, 1), b, of_a, of_b))


def test_sparse_products_of_a_pair() -> None:
    """M = 256: each CTA has the metadata of its own rows."""
    m, n, rng = 256, 64, np.random.default_rng(13)
    a, b = Operand.random(rng, "f16", (m, 16)), Operand.random(rng, "f16", (n, 32))
    dense, index = sparse(rng, "f16", a)
    images = [Image(), Image()]
    for cta, image in enumerate(images):
        parts = [Operand(x.word, x.numbers, np.split(x.octets, 2)[cta], 2) for x in (a, b)]
        descs = image.place(0, parts[0], 6), image.place(1, parts[1], 4)
        image.raw[2 * SIZE : 2 * SIZE + 4096] = metadata("f16", np.split(index, 2)[cta]).reshape(-1).view(np.uint8)
    text = f"add.u32 %r50, %t, {SFA};" + store_columns("%r50", 8, 2 * SIZE)
    text += SYNC + load(*descs, reference.plain("f32", "f16", "f16", m, n, sparse=1))
    text += LEADER + mma(".sp.cta_group::2.kind::f16", meta="[%r50], ") + COMMIT + wait(0)
    raw = np.concatenate([image.raw for image in images])
    found = run(alloc(256, 2) + text + save(64) + dealloc(256, 2), raw, 2 * 128 * 64, grid=2, cluster=2).reshape(2, 128, 64)
    np.testing.assert_array_equal(numbers_of("f32", gather(found, m, n, 2)), dense @ b.numbers.T)
