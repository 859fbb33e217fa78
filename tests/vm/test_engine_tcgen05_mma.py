"""tcgen05.mma on the virtual machine: each kind, swizzle, layout and operand against NumPy; values are exact in the accumulator."""

from __future__ import annotations

import numpy as np
import pytest
import tcgen05_reference as reference
from tcgen05_operands import DEPTH, SIZE, Array, Image, Operand, gather, load, mma, numbers_of, store_columns, words_of
from tcgen05_support import alloc, commit_and_wait, dealloc, run, save, start


def product(
    kind: str, words: tuple[str, str, str], shape: tuple[int, int], modes: tuple[int, int], majors: tuple[int, int] = (0, 0), step: int = 0
) -> None:
    """One product without an accumulator."""
    (a_type, b_type, d), (m, n) = words, shape
    rng = np.random.default_rng(m + n + sum(modes))
    a, b = (Operand.random(rng, word, (rows, DEPTH[kind])) for word, rows in ((a_type, m), (b_type, n)))
    image = Image()
    descs = image.place(0, a, modes[0], bool(majors[0]), step), image.place(2, b, modes[1], bool(majors[1]), step)
    idesc = reference.plain(d, a_type, b_type, m, n, major=majors)
    body = alloc(256) + load(*descs, idesc) + mma(f".cta_group::1.kind::{kind}") + commit_and_wait() + save(128) + dealloc(256)
    cells = run(body, image.raw, 128 * 128).reshape(1, 128, 128)
    np.testing.assert_array_equal(numbers_of(d, gather(cells, m, n)), a.numbers @ b.numbers.T)


KINDS = [
    *(("f16", word, word, "f32") for word in ("f16", "bf16")),
    *(("f16", "f16", "f16", "f16"), ("tf32", "tf32", "tf32", "f32"), ("i8", "s8", "u8", "s32"), ("i8", "u8", "s8", "s32")),
    *(("f8f6f4", a, b, "f32") for a, b in (("e4m3", "e5m2"), ("e5m2", "e4m3"), ("e2m3", "e3m2"), ("e3m2", "e2m1"), ("e2m1", "e4m3"))),
    ("f8f6f4", "e4m3", "e4m3", "f16"),
]


@pytest.mark.parametrize(("kind", "a", "b", "d"), KINDS)
def test_each_kind(kind: str, a: str, b: str, d: str) -> None:
    product(kind, (a, b, d), (128, 64), (0, 2))


@pytest.mark.parametrize("modes", [(0, 0), (2, 4), (4, 6), (6, 2), (1, 1)])
def test_each_swizzle(modes: tuple[int, int]) -> None:
    product("f16", ("f16", "f16", "f32"), (64, 32), modes)


@pytest.mark.parametrize("modes", [(2, 4), (4, 2)])
def test_a_step_of_k_inside_a_swizzled_row(modes: tuple[int, int]) -> None:
    product("f16", ("bf16", "bf16", "f32"), (128, 16), modes, step=1)


@pytest.mark.parametrize("majors", [(0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize(
    ("kind", "word", "d", "modes"), [("f16", "f16", "f32", (2, 4)), ("f16", "bf16", "f32", (6, 0)), ("i8", "s8", "s32", (0, 2))]
)
def test_mn_major_operands(kind: str, word: str, d: str, modes: tuple[int, int], majors: tuple[int, int]) -> None:
    product(kind, (word, word, d), (128, 64), modes, majors)


def test_mn_major_operands_of_32_bits_need_atoms_of_32_bytes() -> None:
    product("tf32", ("tf32", "tf32", "f32"), (128, 32), (1, 1), (1, 1))


@pytest.mark.parametrize(("m", "n"), [(64, 8), (64, 128), (128, 128), (128, 24)])
def test_shapes(m: int, n: int) -> None:
    product("f16", ("f16", "f16", "f32"), (m, n), (2, 2))


# Accumulators and their options --------------------------------------------------------------------------------------------


class Case:
    """A product of one CTA whose accumulator begins as small numbers."""

    def __init__(self, d: str = "f32", m: int = 128, n: int = 32, kind: str = "f16", word: str = "f16") -> None:
        rng = np.random.default_rng(7)
        self.d, self.m, self.n, self.kind, self.word = d, m, n, kind, word
        self.a, self.b = (Operand.random(rng, word, (rows, DEPTH[kind])) for rows in (m, n))
        self.c = rng.integers(-8, 9, (128, n)).astype(np.float64) * 4
        self.image = Image()
        self.descs = self.image.place(0, self.a, 2), self.image.place(1, self.b, 2)
        self.image.raw[3 * SIZE : 3 * SIZE + 512 * n] = words_of(d, self.c).reshape(-1).view(np.uint8)

    def run(self, text: str, *, fields: dict[str, int] | None = None, d_offset: int = 0) -> Array:
        """Numbers [128, n] after C is stored and `text` has run."""
        idesc = reference.plain(self.d, self.word, self.word, self.m, self.n, **(fields or {}))
        names = ", ".join(f"%d{i}" for i in range(self.n))
        loads = "".join(f"ld.shared.b32 %d{i}, [%r25+{4 * i}];" for i in range(self.n))
        fill = f"""mul.lo.u32 %r25, %thread, {4 * self.n}; add.u32 %r25, %r25, %smem; add.u32 %r25, %r25, {3 * SIZE}; {loads}
tcgen05.st.sync.aligned.32x32b.x{self.n}.b32 [%t], {{{names}}}; tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;"""
        body = alloc(32) + fill + load(*self.descs, idesc) + text + commit_and_wait() + save(self.n) + dealloc(32)
        return numbers_of(self.d, run(body, self.image.raw, 128 * self.n).reshape(128, self.n))

    @property
    def product(self) -> Array:
        return np.asarray(self.a.numbers @ self.b.numbers.T)


@pytest.mark.parametrize(("d", "kind", "word"), [("f32", "f16", "f16"), ("f16", "f16", "f16"), ("s32", "i8", "s8")])
def test_enable_input_d(d: str, kind: str, word: str) -> None:
    case = Case(d, kind=kind, word=word)
    op = f".cta_group::1.kind::{kind}"
    np.testing.assert_array_equal(case.run(mma(op, keep="1")), case.c + case.product)
    np.testing.assert_array_equal(case.run(mma(op, keep="!%keep") + mma(op, keep="1")), case.c + 2 * case.product)
    np.testing.assert_array_equal(case.run(mma(op, keep="%keep")), case.product)


def test_scale_input_d() -> None:
    case = Case()
    np.testing.assert_array_equal(case.run(mma(".cta_group::1.kind::f16", keep="1", tail=", 3")), case.c / 8 + case.product)


def test_disabled_lanes_are_neither_read_nor_written() -> None:
    case = Case()
    masks = "mov.b32 %r40, 0x80000001; mov.b32 %r41, 0; mov.b32 %r42, -1; mov.b32 %r43, 0x10;"
    found = case.run(masks + mma(".cta_group::1.kind::f16", keep="{%r40, %r41, %r42, %r43}, %keep"))
    off = np.isin(np.arange(128), [0, 31, *range(64, 96), 100])
    np.testing.assert_array_equal(found, np.where(off[:, None], case.c, case.product))


@pytest.mark.parametrize("negate", [1, 2, 3])
def test_negate(negate: int) -> None:
    case = Case()
    sign = 1 if negate == 3 else -1
    found = case.run(mma(".cta_group::1.kind::f16", keep="1"), fields={"negate": negate})
    np.testing.assert_array_equal(found, case.c + sign * case.product)


@pytest.mark.parametrize("saturate", [0, 1])
def test_integers_wrap_or_saturate(saturate: int) -> None:
    case = Case("s32", kind="i8", word="s8")
    case.c[...] = 2**31 - 1
    case.image.raw[3 * SIZE : 3 * SIZE + 512 * case.n] = words_of("s32", case.c).reshape(-1).view(np.uint8)
    sums = case.c + case.product
    want = np.minimum(sums, 2**31 - 1) if saturate else (sums.astype(np.int64) + 2**31) % 2**32 - 2**31
    np.testing.assert_array_equal(case.run(mma(".cta_group::1.kind::i8", keep="1"), fields={"saturate": saturate}), want)


def test_half_the_lanes_at_lane_16() -> None:
    """Layout F: the other lanes stay as they were."""
    case = Case(m=64)
    found = case.run("add.u32 %r50, %t, 0x100000;" + mma(".cta_group::1.kind::f16", d="%r50"))
    rows = [16 + m // 16 * 32 + m % 16 for m in range(64)]
    np.testing.assert_array_equal(found[rows], case.product)
    others = np.setdiff1d(np.arange(128), rows)
    np.testing.assert_array_equal(found[others], case.c[others])


def test_an_address_at_a_lane_that_the_layout_has_not() -> None:
    case = Case()
    idesc = reference.plain("f32", "f16", "f16", 128, 32)
    body = alloc(32) + load(*case.descs, idesc) + "add.u32 %r50, %t, 0x100000;" + mma(".cta_group::1.kind::f16", d="%r50")
    stats, _ = start(body, case.image.raw, 1)
    (fault,) = stats.faults
    assert (fault.kind, fault.message) == ("illegal", "D begins at lane 16; M = 128 allows 0")


# A in tensor memory ---------------------------------------------------------------------------------------------------------


TENSOR_A = [
    *(("f16", "f16", "f32", m, False) for m in (64, 128)),
    *(("f16", "bf16", "f32", m, True) for m in (32, 64, 128)),
    *(("tf32", "tf32", "f32", 128, False), ("i8", "s8", "s32", 128, False), ("f8f6f4", "e4m3", "f32", 64, True)),
    *(("f8f6f4", word, "f32", 128, False) for word in ("e2m1", "e3m2", "e2m3")),
]


@pytest.mark.parametrize(("kind", "word", "d", "m", "ws"), TENSOR_A)
def test_a_in_tensor_memory(kind: str, word: str, d: str, m: int, ws: bool) -> None:
    """Layouts with several parts need a copy of A in each."""
    n, rng = 64, np.random.default_rng(m)
    b = Operand.random(rng, "e4m3" if kind == "f8f6f4" else word, (n, DEPTH[kind]))
    if word in reference.NARROW:
        codes = rng.integers(0, 1 << reference.NARROW[word], (m, DEPTH[kind]))
        numbers, octets = reference.values(word, codes), (codes << 2 if word == "e2m1" else codes).astype(np.uint8)
    else:
        a = Operand.random(rng, word, (m, DEPTH[kind]))
        numbers, octets = a.numbers, a.octets.reshape(m, -1)
    cells = np.full((128, 8), 0xEEEEEEEE, np.uint32)
    for copy in range(128 // m if ws else 1):
        for row in range(m):
            cells[reference.d_cell((m, n), row, copy * n // (128 // m) if ws else 0, ws=ws)[1]] = octets[row].view(np.uint32)
    image = Image()
    descriptor = image.place(2, b, 2)
    image.raw[:4096] = cells.reshape(-1).view(np.uint8)
    idesc = reference.plain(d, word, b.word, m, n)
    more = ".ws" if ws else ""
    body = alloc(256) + "add.u32 %r50, %t, 128;" + store_columns("%r50", 8, 0) + load(0, descriptor, idesc)
    body += mma(f"{more}.cta_group::1.kind::{kind}", a="[%t + 128]") + commit_and_wait() + save(64) + dealloc(256)
    found = run(body, image.raw, 128 * 64).reshape(1, 128, 64)
    np.testing.assert_array_equal(numbers_of(d, gather(found, m, n, ws=ws)), numbers @ b.numbers.T)


@pytest.mark.parametrize("more", ["", ".collector::a::discard"])
def test_a_is_shifted_behind_the_product(more: str) -> None:
    """Rows 31, 63, 95 and 127 stay. The second product is of the shifted rows."""
    rng = np.random.default_rng(7)
    a, b = Operand.random(rng, "f16", (128, 16)), Operand.random(rng, "f16", (64, 16))
    image = Image()
    descriptor = image.place(2, b, 2)
    image.raw[:4096] = a.octets.reshape(-1)
    body = alloc(256) + "add.u32 %r50, %t, 128; add.u32 %r51, %t, 64;" + store_columns("%r50", 8, 0)
    body += load(0, descriptor, reference.plain("f32", "f16", "f16", 128, 64)) + mma(
        f".cta_group::1.kind::f16.ashift{more}", a="[%t + 128]"
    )
    body += mma(".cta_group::1.kind::f16", a="[%t + 128]", d="%r51") + commit_and_wait() + save(128) + dealloc(256)
    found = numbers_of("f32", run(body, image.raw, 128 * 128).reshape(128, 128))
    shifted = np.where(np.arange(128)[:, None] % 32 == 31, a.numbers, np.roll(a.numbers, -1, 0))
    np.testing.assert_array_equal(found, np.hstack([a.numbers @ b.numbers.T, shifted @ b.numbers.T]))


def test_only_whole_matrices_are_shifted() -> None:
    image = Image()
    descriptor = image.place(2, Operand.random(np.random.default_rng(7), "f16", (64, 16)), 2)
    body = alloc(256) + load(0, descriptor, reference.plain("f32", "f16", "f16", 64, 64))
    stats, _ = start(body + mma(".cta_group::1.kind::f16.ashift", a="[%t + 128]"), image.raw, 1)
    (fault,) = stats.faults
    assert (fault.kind, fault.message) == ("illegal", ".ashift with M = 64: M must be 128 or 256")


@pytest.mark.parametrize(("m", "n"), [(32, 64), (64, 128), (128, 64)])
def test_weight_stationary_layouts(m: int, n: int) -> None:
    rng = np.random.default_rng(m)
    a, b = Operand.random(rng, "f16", (m, 16)), Operand.random(rng, "f16", (n, 16))
    image = Image()
    descs = image.place(0, a, 2), image.place(2, b, 2)
    body = alloc(128) + load(*descs, reference.plain("f32", "f16", "f16", m, n))
    body += mma(".ws.cta_group::1.kind::f16.collector::b1::fill") + commit_and_wait() + save(64) + dealloc(128)
    found = run(body, image.raw, 128 * 64).reshape(1, 128, 64)
    np.testing.assert_array_equal(numbers_of("f32", gather(found, m, n, ws=True)), a.numbers @ b.numbers.T)


def test_columns_that_a_mask_makes_zero() -> None:
    """Every third run of two columns of B counts as zero; B is taken from its fourth column on."""
    rng = np.random.default_rng(5)
    a, b = Operand.random(rng, "f16", (128, 16)), Operand.random(rng, "f16", (72, 16))
    image = Image()
    descs = image.place(0, a, 2), image.place(2, b, 2)
    mask = 1 << 39 | 1 << 40 | 3 << 48 | 4 << 56
    body = alloc(64) + load(*descs, reference.plain("f32", "f16", "f16", 128, 64)) + f"mov.b64 %rd12, {mask};"
    body += mma(".ws.cta_group::1.kind::f16", tail=", %rd12") + commit_and_wait() + save(64) + dealloc(64)
    want = (a.numbers @ b.numbers.T)[:, 4:68]
    want[:, np.arange(64) % 6 >= 4] = 0
    np.testing.assert_array_equal(numbers_of("f32", run(body, image.raw, 128 * 64).reshape(128, 64)), want)


def test_collectors_and_a_chain_of_products_in_one_thread() -> None:
    case = Case()
    op = ".cta_group::1.kind::f16"
    chain = mma(f"{op}.collector::a::fill") + "".join(mma(f"{op}.collector::a::{use}", keep="1") for use in ("use", "lastuse"))
    np.testing.assert_array_equal(case.run(chain), 3 * case.product)
