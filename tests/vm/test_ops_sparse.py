"""mma.sp, the kinds of mma, block scaling and m8n8k4 of f16 against NumPy: each matrix element is placed by the formulas of the ISA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from ops_reference import op_of, run

from consan.backends.cpu.semantics.ops import semantics

Array = npt.NDArray[Any]
WARPS = 3
GROUP, T = np.arange(32) >> 2, np.arange(32) & 3
ORDERED = [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)]  # the places of two of four: 0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110
# By the bits of an element: shapes, and the number of sparsity selectors of each.
SHAPES = {
    16: {"m16n8k16": 4, "m16n8k32": 2},
    32: {"m16n8k8": 4, "m16n8k16": 2},
    8: {"m16n8k32": 2, "m16n8k64": 1},
    4: {"m16n8k64": 2, "m16n8k128": 1},
}

# Codes, and the numbers that they stand for, written out from "Alternate Floating-Point Data Formats".
E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6]


def _mini(exponent: int, mantissa: int, code: Array) -> Array:
    bias, field = 2 ** (exponent - 1) - 1, code >> mantissa & (1 << exponent) - 1
    value = np.ldexp((code & (1 << mantissa) - 1) + (field > 0) * 2.0**mantissa, np.maximum(field, 1) - bias - mantissa)
    return np.where(code >> (exponent + mantissa) & 1, -value, value)


def _codes(word: str, rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Random elements of a type, as bits and as numbers. None of 8 bits is a NaN or an infinity."""
    if word == "f16":
        values = rng.integers(-8, 9, shape).astype(np.float16)
        return values.view(np.uint16).astype(np.uint32), values.astype(np.float64)
    if word in ("bf16", "tf32"):
        values = rng.integers(-8, 9, shape).astype(np.float32)
        bits = values.view(np.uint32)
        return (bits >> 16 if word == "bf16" else bits), values.astype(np.float64)
    if word in ("s8", "u8", "s4", "u4"):
        width = int(word[1])
        bits = rng.integers(0, 1 << width, shape).astype(np.uint32)
        signed = word[0] == "s"
        return bits, np.where(signed & (bits >> (width - 1) > 0), bits.astype(np.int64) - (1 << width), bits.astype(np.int64)).astype(float)
    if word == "e2m1":
        bits = rng.integers(0, 16, shape).astype(np.uint32)
        return bits, np.where(bits >> 3, -1.0, 1.0) * np.array(E2M1)[bits & 7]
    fields = {"e4m3": (4, 3), "e5m2": (5, 2), "e3m2": (3, 2), "e2m3": (2, 3)}[word]
    sign = 1 << sum(fields)
    bits = rng.integers(0, 0x48 if sign == 0x80 else sign, shape) | rng.integers(0, 2, shape) * sign
    return bits.astype(np.uint32), _mini(*fields, bits)


def _registers(elements: Array, bits: int) -> list[Array]:
    """Registers [W, 32] from the elements of each lane [W, 32, count], the lowest bits first."""
    per = 32 // bits
    grouped = elements.reshape(*elements.shape[:2], -1, per).astype(np.uint32)
    words = np.bitwise_or.reduce(grouped << (np.arange(per) * bits).astype(np.uint32), axis=-1)
    return [np.ascontiguousarray(words[..., i]) for i in range(words.shape[-1])]


def _lanes(matrix: Array, place: Callable[[int], tuple[Array, Array]], count: int) -> Array:
    return np.stack([matrix[:, place(i)[0], place(i)[1]] for i in range(count)], axis=-1)


def _place_of_stored(bits: int) -> Callable[[int], tuple[Array, Array]]:
    """Row and column of element i of the half of A that is stored: in a register those of one row, of half a dense fragment."""
    per = 32 // bits
    return lambda i: (GROUP + 8 * (i // per % 2), T * per + i % per + 4 * per * (i // (2 * per)))


def _place_of_b(bits: int) -> Callable[[int], tuple[Array, Array]]:
    per = 32 // bits
    return lambda i: (T * per + i % per + 4 * per * (i // per), GROUP)


def _place_of_c(i: int) -> tuple[Array, Array]:
    return GROUP + 8 * (i >= 2), T * 2 + (i & 1)


def _metadata(codes: Array, bits: int, selector: int, rng: np.random.Generator) -> Array:
    """Registers [W, 32] from the 4-bit codes [W, 16, chunks]; lanes that the selector does not name hold something else."""
    chunks = codes.shape[-1]
    out = rng.integers(0, 1 << 32, (WARPS, 32), np.uint32)
    for row in range(16):
        for chunk in range(chunks):
            group, upper = row % 8, row // 8
            if bits >= 16:  # a lane has four chunks of row g, and of row g + 8
                lane, place = chunk // 4 + selector * max(1, chunks // 4), chunk % 4 + 4 * upper
            else:  # a lane has eight chunks of one row
                lane, place = upper + 2 * (chunk // 8) + 2 * selector * (chunks == 8), chunk % 8
            word, shift = out[:, group * 4 + lane], np.uint32(4 * place)
            out[:, group * 4 + lane] = word & ~(np.uint32(15) << shift) | codes[:, row, chunk].astype(np.uint32) << shift
    return out


def _sparse(word: str, bits: int, k: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """The stored half of A as bits, the codes of its chunks, and all of A as numbers."""
    stored, values = _codes(word, rng, (WARPS, 16, k // 2))
    unit, chunk = (2 if bits == 4 else 1), (2 if bits == 32 else 8 if bits == 4 else 4)
    codes, dense = np.zeros((WARPS, 16, k // chunk), np.uint32), np.zeros((WARPS, 16, k))
    for index in np.ndindex(*codes.shape):
        if bits == 32:
            one = int(rng.integers(2))
            codes[index], kept = (0b1110 if one else 0b0100), [one]
        else:
            pair = ORDERED[rng.integers(len(ORDERED))]
            codes[index] = pair[0] | pair[1] << 2
            kept = [unit * place + j for place in pair for j in range(unit)]
        warp, row, at = index
        for number, place in enumerate(kept):
            dense[warp, row, at * chunk + place] = values[warp, row, at * len(kept) + number]
    return stored, codes, dense


def _result(registers: Any, dtype: str) -> Array:
    elements = np.ascontiguousarray(np.stack(registers, axis=-1)).view(dtype)
    out = np.empty((WARPS, 16, 8))
    for i in range(4):
        rows, columns = _place_of_c(i)
        out[:, rows, columns] = elements[..., i]
    return out


def _execute(opcode: str, a: list[Array], b: list[Array], c: Array, more: list[Array], dtype: str) -> Array:
    operands = [*a, *b, *(np.ascontiguousarray(c.astype(dtype).view(np.uint32 if dtype == "f2" else dtype)[..., i]) for i in
                          range(2 if dtype == "f2" else 4)), *more]  # fmt: skip
    op = op_of(opcode)
    assert len(op.sources) == len(operands)
    return _result(run(op, np.ones((WARPS, 32), bool), *operands), dtype)


def _k(shape: str) -> int:
    return int(shape.rpartition("k")[2])


def _whole(value: int, dtype: Any = np.uint32) -> Array:
    return np.full((WARPS, 32), value, dtype)


TYPES = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "s4": 4, "u4": 4}
CASES = [
    (word, bits, shape, selector)
    for word, bits in TYPES.items()
    for shape, selectors in SHAPES[bits].items()
    for selector in range(selectors)
    if word[0] != "e" or shape == "m16n8k64"
]


@pytest.mark.parametrize("variant", ["sp", "sp::ordered_metadata"])
@pytest.mark.parametrize(("word", "bits", "shape", "selector"), CASES)
def test_a_sparse_product(variant: str, word: str, bits: int, shape: str, selector: int) -> None:
    k, integer = _k(shape), word[0] in "su"
    rng = np.random.default_rng(k + selector)
    stored, codes, dense = _sparse(word, bits, k, rng)
    b, b_values = _codes(word, rng, (WARPS, k, 8))
    c = rng.integers(-99, 99, (WARPS, 16, 8))
    opcode = f"mma.{variant}.sync.aligned.{shape}.row.col.{'s32' if integer else 'f32'}.{word}.{word}.{'s32' if integer else 'f32'}"
    found = _execute(
        opcode,
        _registers(_lanes(stored, _place_of_stored(bits), k // 4), bits),
        _registers(_lanes(b, _place_of_b(bits), k // 4), bits),
        _lanes(c, _place_of_c, 4),
        [_metadata(codes, bits, selector, rng), _whole(selector)],
        "i4" if integer else "f4",
    )
    np.testing.assert_array_equal(found, (dense @ b_values + c).astype(np.float32 if not integer else np.int64))


def test_a_sparse_sum_is_clamped() -> None:
    rng = np.random.default_rng(3)
    ones, codes = np.full((WARPS, 16, 16), 127, np.uint32), np.full((WARPS, 16, 8), 0b0100)
    c = np.full((WARPS, 16, 8), 2**31 - 5)
    given = (_registers(_lanes(ones, _place_of_stored(8), 8), 8), [_whole(0x7F7F7F7F)] * 2, _lanes(c, _place_of_c, 4))
    more = [_metadata(codes, 8, 1, rng), _whole(1)]
    found = _execute("mma.sp.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32", *given, more, "i4")
    assert (found == 2**31 - 1).all()


def _contained(word: str, bits: Array) -> Array:
    """Elements in bytes of their own; what pads them is not zero."""
    if word == "e2m1":
        return bits << 2 | 0b11000010
    return bits | 0b10000000 if word in ("e3m2", "e2m3") else bits


KINDS = [("e4m3", "e2m1"), ("e5m2", "e3m2"), ("e3m2", "e5m2"), ("e2m3", "e4m3"), ("e2m1", "e2m3")]


@pytest.mark.parametrize(("first", "second"), KINDS)
@pytest.mark.parametrize("accumulator", ["f32", "f16"])
@pytest.mark.parametrize("sparse", [False, True])
def test_small_elements_are_in_bytes(first: str, second: str, accumulator: str, sparse: bool) -> None:
    rng = np.random.default_rng(5)
    k, variant = (64, "sp::ordered_metadata.") if sparse else (32, "")
    stored, codes, dense = _sparse(first, 8, k, rng)
    if not sparse:
        stored, dense = _codes(first, rng, (WARPS, 16, k))
    b, b_values = _codes(second, rng, (WARPS, k, 8))
    c = rng.integers(-9, 9, (WARPS, 16, 8))
    found = _execute(
        f"mma.{variant}sync.aligned.m16n8k{k}.row.col.kind::f8f6f4.{accumulator}.{first}.{second}.{accumulator}",
        _registers(_lanes(_contained(first, stored), _place_of_stored(8), 16), 8),
        _registers(_lanes(_contained(second, b), _place_of_b(8), k // 4), 8),
        _lanes(c, _place_of_c, 4),
        [_metadata(codes, 8, 0, rng), _whole(0)] if sparse else [],
        "f4" if accumulator == "f32" else "f2",
    )
    exact = dense @ b_values + c
    np.testing.assert_array_equal(found, exact.astype("f4" if accumulator == "f32" else "f2").astype(float))


def _factors(word: str, rng: np.random.Generator, count: int, columns: int) -> tuple[Array, Array]:
    if word == "ue8m0":
        codes = rng.integers(125, 130, (WARPS, columns, count))
        return codes, np.ldexp(1.0, codes - 127)
    codes = rng.integers(0x28, 0x48, (WARPS, columns, count))
    return codes, _mini(4, 3, codes)


SCALED = [
    ("kind::mxf8f6f4", "e4m3", "e2m1", "ue8m0", 1, "", 8),
    ("kind::mxf8f6f4", "e3m2", "e5m2", "ue8m0", 1, ".scale_vec::1X", 8),
    ("kind::mxf4", "e2m1", "e2m1", "ue8m0", 2, "", 4),
    ("kind::mxf4", "e2m1", "e2m1", "ue8m0", 2, ".scale_vec::2X", 4),
    ("kind::mxf4nvf4", "e2m1", "e2m1", "ue8m0", 2, ".scale_vec::2X", 4),
    ("kind::mxf4nvf4", "e2m1", "e2m1", "ue8m0", 4, ".scale_vec::4X", 4),
    ("kind::mxf4nvf4", "e2m1", "e2m1", "ue4m3", 4, ".scale_vec::4X", 4),
]


@pytest.mark.parametrize(("kind", "first", "second", "scale", "count", "vector", "bits"), SCALED)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("turn", [0, 1, 2, 3])
def test_a_scaled_product(
    kind: str, first: str, second: str, scale: str, count: int, vector: str, bits: int, sparse: bool, turn: int
) -> None:
    rng = np.random.default_rng(turn)
    k, variant = 256 // bits * (1 + sparse), "sp::ordered_metadata." if sparse else ""
    stored, codes, dense = _sparse(first, bits, k, rng)
    if not sparse:
        stored, dense = _codes(first, rng, (WARPS, 16, k))
    b, b_values = _codes(second, rng, (WARPS, k, 8))
    c = rng.integers(-9, 9, (WARPS, 16, 8))
    byte, thread_a, thread_b = {1: turn, 2: turn // 2 * 2, 4: 0}[count], turn % 2, turn
    (a_codes, a_scales), (b_codes, b_scales) = _factors(scale, rng, count, 16), _factors(scale, rng, count, 8)
    data_a, data_b = (rng.integers(0, 256, (WARPS, 32, 4)).astype(np.uint8) for _ in range(2))
    for row in range(16):
        data_a[:, row % 8 * 4 + 2 * thread_a + row // 8, byte : byte + count] = a_codes[:, row]
    for column in range(8):
        data_b[:, column * 4 + thread_b, byte : byte + count] = b_codes[:, column]
    selected = [_whole(byte, np.uint16), _whole(thread_a, np.uint16)], [_whole(byte, np.uint16), _whole(thread_b, np.uint16)]
    contained = bits == 8
    found = _execute(
        f"mma.{variant}sync.aligned.m16n8k{k}.row.col.{kind}.block_scale{vector}.f32.{first}.{second}.f32.{scale}",
        _registers(_lanes(_contained(first, stored) if contained else stored, _place_of_stored(bits), 128 // bits), bits),
        _registers(_lanes(_contained(second, b) if contained else b, _place_of_b(bits), k // 4), bits),
        _lanes(c, _place_of_c, 4),
        [
            *([_metadata(codes, bits, 0, rng), _whole(0)] if sparse else []),
            *(data_a.view(np.uint32)[..., 0], *selected[0], data_b.view(np.uint32)[..., 0], *selected[1]),
        ],
        "f4",
    )
    left = dense * np.repeat(a_scales, k // count, axis=2)
    right = b_values * np.repeat(b_scales, k // count, axis=2).transpose(0, 2, 1)
    np.testing.assert_allclose(found, (left @ right + c).astype(np.float32), rtol=1e-6)


@pytest.mark.parametrize("layout_a", ["row", "col"])
@pytest.mark.parametrize("layout_b", ["row", "col"])
@pytest.mark.parametrize(("d", "c"), [("f32", "f32"), ("f16", "f16"), ("f32", "f16")])
def test_four_products_of_eight_lanes(layout_a: str, layout_b: str, d: str, c: str) -> None:
    rng = np.random.default_rng(8)
    (a, a_values), (b, b_values) = _codes("f16", rng, (WARPS, 4, 8, 4)), _codes("f16", rng, (WARPS, 4, 4, 8))
    sums = rng.integers(-9, 9, (WARPS, 4, 8, 8))

    def elements(matrix: Array, count: int, place: Callable[[int, int], tuple[int, int]]) -> Array:
        out = np.zeros((WARPS, 32, count), matrix.dtype)
        for lane in range(32):
            for i in range(count):
                out[:, lane, i] = matrix[(slice(None), lane % 16 // 4, *place(lane, i))]
        return out

    def along(lane: int, i: int) -> tuple[int, int]:
        return lane % 4 + 4 * (lane >= 16), i

    def across(lane: int, i: int) -> tuple[int, int]:
        return i + 4 * (lane >= 16), lane % 4

    def of_c(word: str) -> Callable[[int, int], tuple[int, int]]:
        if word == "f16":
            return along
        return lambda lane, i: ((lane & 1) + (i & 2) + 4 * (lane >= 16), (i & 4) + (lane & 2) + (i & 1))

    lanes_a = elements(a, 4, along if layout_a == "row" else across)
    swapped = along if layout_b == "col" else across
    lanes_b = elements(b, 4, lambda lane, i: swapped(lane, i)[::-1])
    lanes_c = elements(sums, 8, of_c(c)).astype("f2" if c == "f16" else "f4").view(np.uint32 if c == "f16" else "f4")
    registers = (
        *_registers(lanes_a, 16),
        *_registers(lanes_b, 16),
        *(np.ascontiguousarray(lanes_c[..., i]) for i in range(lanes_c.shape[2])),
    )
    op = op_of(f"mma.sync.aligned.m8n8k4.{layout_a}.{layout_b}.{d}.f16.f16.{c}")
    found = np.stack(run(op, np.ones((WARPS, 32), bool), *registers), axis=-1).view("f2" if d == "f16" else "f4")
    np.testing.assert_array_equal(found, elements(a_values @ b_values + sums, 8, of_c(d)))


@pytest.mark.parametrize(
    "opcode",
    [
        "mma.sp.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32.e3m2.e2m3.f32",  # needs ordered metadata
        "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f16",
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue4m3",
    ],
)
def test_what_does_not_exist(opcode: str) -> None:
    assert semantics(tuple(opcode.split("."))) is None
