"""mma.sync against a matrix product, with the fragment layouts written out as in the ISA's formulas."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from ops_reference import op_of, run

from consan.backends.cpu.semantics.ops import semantics

WARPS = 3
GROUP, T = np.arange(32) >> 2, np.arange(32) & 3
Place = Callable[[int], tuple[np.ndarray, np.ndarray]]  # element index -> (rows, columns) of the 32 lanes

# Row and column of element i, copied from "Matrix Fragments for mma.*".
A: dict[str, Place] = {
    "m16n8k8 16": lambda i: (GROUP + 8 * (i >= 2), T * 2 + (i & 1)),
    "m16n8k16 16": lambda i: (GROUP + 8 * (not (0 <= i < 2 or 4 <= i < 6)), T * 2 + (i & 1) + 8 * (i >= 4)),
    "m16n8k4 32": lambda i: (GROUP + 8 * i, T),
    "m16n8k8 32": lambda i: (GROUP + 8 * (i in (1, 3)), T + 4 * (i >= 2)),
    "m8n8k16 8": lambda i: (GROUP, T * 4 + i),
    "m16n8k16 8": lambda i: (GROUP + 8 * (i >= 4), T * 4 + (i & 3)),
    "m16n8k32 8": lambda i: (GROUP + 8 * (not (0 <= i < 4 or 8 <= i < 12)), T * 4 + (i & 3) + 16 * (i >= 8)),
    "m8n8k32 4": lambda i: (GROUP, T * 8 + i),
    "m16n8k32 4": lambda i: (GROUP + 8 * (i >= 8), T * 8 + (i & 7)),
    "m16n8k64 4": lambda i: (GROUP + 8 * (not (0 <= i < 8 or 16 <= i < 24)), T * 8 + (i & 7) + 32 * (i >= 16)),
    "m8n8k128 1": lambda i: (GROUP, T * 32 + i),
    "m16n8k128 1": lambda i: (GROUP + 8 * (i >= 32), T * 32 + (i & 31)),
    "m16n8k256 1": lambda i: (GROUP + 8 * (not (i < 32 or 64 <= i < 96)), T * 32 + (i & 31) + 128 * (i >= 64)),
    "m8n8k4 64": lambda i: (GROUP, T),
    "m16n8k4 64": lambda i: (GROUP + 8 * i, T),
    "m16n8k8 64": lambda i: (GROUP + 8 * (i in (1, 3)), T + 4 * (i >= 2)),
    "m16n8k16 64": lambda i: (GROUP + 8 * (i % 2), (i * 2 if i % 2 == 0 else i * 2 - 2) + T),
}
B: dict[str, Place] = {
    "m16n8k8 16": lambda i: (T * 2 + i, GROUP),
    "m16n8k16 16": lambda i: (T * 2 + (i & 1) + 8 * (i >= 2), GROUP),
    "m16n8k4 32": lambda i: (T, GROUP),
    "m16n8k8 32": lambda i: (T + 4 * i, GROUP),
    "m8n8k16 8": lambda i: (T * 4 + i, GROUP),
    "m16n8k16 8": lambda i: (T * 4 + i, GROUP),
    "m16n8k32 8": lambda i: (T * 4 + (i & 3) + 16 * (i >= 4), GROUP),
    "m8n8k32 4": lambda i: (T * 8 + i, GROUP),
    "m16n8k32 4": lambda i: (T * 8 + i, GROUP),
    "m16n8k64 4": lambda i: (T * 8 + (i & 7) + 32 * (i >= 8), GROUP),
    "m8n8k128 1": lambda i: (T * 32 + i, GROUP),
    "m16n8k128 1": lambda i: (T * 32 + i, GROUP),
    "m16n8k256 1": lambda i: (T * 32 + (i & 31) + 128 * (i >= 32), GROUP),
    "m8n8k4 64": lambda i: (T, GROUP),
    "m16n8k4 64": lambda i: (T, GROUP),
    "m16n8k8 64": lambda i: (T + 4 * i, GROUP),
    "m16n8k16 64": lambda i: (T + 4 * i, GROUP),
}


def place_c(i: int) -> tuple[np.ndarray, np.ndarray]:
    return GROUP + 8 * (i >= 2), T * 2 + (i & 1)


def size(shape: str) -> tuple[int, int, int]:
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    return int(m), int(n), int(k)


def fragments(matrix: np.ndarray, place: Place, count: int) -> np.ndarray:
    """[W, 32, count] elements of matrices [W, rows, columns]."""
    out = np.empty((len(matrix), 32, count), matrix.dtype)
    for i in range(count):
        rows, columns = place(i)
        out[:, np.arange(32), i] = matrix[:, rows, columns]
    return out


def registers(elements: np.ndarray, dtype: str) -> list[np.ndarray]:
    """Elements packed into words, lowest first."""
    words = np.ascontiguousarray(elements).view(dtype)
    return [np.ascontiguousarray(words[..., i]) for i in range(words.shape[-1])]


def matrices(results: tuple[np.ndarray, ...], element: str, shape: str) -> np.ndarray:
    m, n, _ = size(shape)
    elements = np.ascontiguousarray(np.stack(results, axis=-1)).view(element)
    out = np.empty((WARPS, m, n), element)
    for i in range(elements.shape[-1]):
        rows, columns = place_c(i)
        out[:, rows, columns] = elements[..., i]
    return out


def execute(opcode: str, a: list[np.ndarray], b: list[np.ndarray], c: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    op = op_of(opcode)
    assert len(op.sources) == len(a) + len(b) + len(c)
    return run(op, np.ones((WARPS, 32), bool), *a, *b, *c)


def random_bf16(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    words = (rng.standard_normal(shape).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return words, (words.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def random_f16(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    values = rng.standard_normal(shape).astype(np.float16)
    return values, values.astype(np.float64)


def random_tf32(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    words = rng.standard_normal(shape).astype(np.float32).view(np.uint32)
    return words, (words & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)  # the low bits must not count


def random_e4m3(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    codes = rng.integers(0, 0x7F, shape).astype(np.uint8) | (rng.integers(0, 2, shape) << 7).astype(np.uint8)
    exponent, fraction = (codes >> 3 & 15).astype(int), (codes & 7).astype(int)
    values = np.ldexp(fraction + 8.0 * (exponent > 0), np.maximum(exponent, 1) - 10)
    return codes, np.where(codes >> 7, -values, values)


def random_e5m2(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    codes = rng.integers(0x20, 0x50, shape).astype(np.uint8) | (rng.integers(0, 2, shape) << 7).astype(np.uint8)
    return codes, (codes.astype(np.uint16) << 8).view(np.float16).astype(np.float64)


FLOATS = {
    "f16": (16, random_f16, ("m16n8k8", "m16n8k16")),
    "bf16": (16, random_bf16, ("m16n8k8", "m16n8k16")),
    "tf32": (32, random_tf32, ("m16n8k4", "m16n8k8")),
    "e4m3": (8, random_e4m3, ("m16n8k16", "m16n8k32")),
    "e5m2": (8, random_e5m2, ("m16n8k16", "m16n8k32")),
}


@pytest.mark.parametrize(("word", "shape"), [(w, s) for w, (_, _, shapes) in FLOATS.items() for s in shapes])
@pytest.mark.parametrize("accumulator", ["f32", "f16"])
def test_floats(word: str, shape: str, accumulator: str) -> None:
    bits, random, _ = FLOATS[word]
    opcode = f"mma.sync.aligned.{shape}.row.col.{accumulator}.{word}.{word}.{accumulator}"
    if accumulator == "f16" and word in ("bf16", "tf32"):
        assert semantics(tuple(opcode.split("."))) is None
        return
    rng = np.random.default_rng(1)
    m, n, k = size(shape)
    a, a_value = random(rng, (WARPS, m, k))
    b, b_value = random(rng, (WARPS, k, n))
    c = rng.standard_normal((WARPS, m, n)).astype(f"float{accumulator[1:]}")
    key = f"{shape} {bits}"
    results = execute(
        opcode,
        registers(fragments(a, A[key], m * k // 32), "u4"),
        registers(fragments(b, B[key], k * n // 32), "u4"),
        registers(fragments(c, place_c, m * n // 32), "f4" if accumulator == "f32" else "u4"),
    )
    exact = np.einsum("wik,wkj->wij", a_value, b_value) + c
    size_of_terms = np.einsum("wik,wkj->wij", np.abs(a_value), np.abs(b_value)) + np.abs(c)
    got = matrices(results, f"f{int(accumulator[1:]) // 8}", shape).astype(np.float64)
    unit = 2.0 ** (-24 if accumulator == "f32" else -11)
    tiny = 2.0 ** (-149 if accumulator == "f32" else -24)
    overflow = np.abs(exact) > 65504 if accumulator == "f16" else np.zeros_like(exact, bool)
    assert (np.abs(got - exact) <= unit * np.abs(exact) + 1e-15 * size_of_terms + tiny)[~overflow].all()


@pytest.mark.parametrize("shape", ["m8n8k16", "m16n8k16", "m16n8k32"])
@pytest.mark.parametrize("first", ["s8", "u8"])
@pytest.mark.parametrize("second", ["s8", "u8"])
@pytest.mark.parametrize("satfinite", ["", ".satfinite"])
def test_bytes(shape: str, first: str, second: str, satfinite: str) -> None:
    rng = np.random.default_rng(2)
    m, n, k = size(shape)
    a, b = rng.integers(0, 256, (WARPS, m, k)).astype(np.uint8), rng.integers(0, 256, (WARPS, k, n)).astype(np.uint8)
    c = rng.integers(-(2**31), 2**31, (WARPS, m, n)).astype(np.int32)
    c[0] = 2**31 - 1
    results = execute(
        f"mma.sync.aligned.{shape}.row.col{satfinite}.s32.{first}.{second}.s32",
        registers(fragments(a, A[f"{shape} 8"], m * k // 32), "u4"),
        registers(fragments(b, B[f"{shape} 8"], k * n // 32), "u4"),
        registers(fragments(c, place_c, m * n // 32), "i4"),
    )
    typed = [x.view(np.int8 if word == "s8" else np.uint8).astype(np.int64) for x, word in ((a, first), (b, second))]
    exact = typed[0] @ typed[1] + c
    want = np.clip(exact, -(2**31), 2**31 - 1) if satfinite else exact.astype(np.int32)
    assert (matrices(results, "i4", shape) == want).all()


@pytest.mark.parametrize("shape", ["m8n8k32", "m16n8k32", "m16n8k64"])
@pytest.mark.parametrize(("first", "second"), [("s4", "u4"), ("u4", "s4"), ("s4", "s4")])
def test_nibbles(shape: str, first: str, second: str) -> None:
    rng = np.random.default_rng(3)
    m, n, k = size(shape)
    a, b = rng.integers(0, 16, (WARPS, m, k)), rng.integers(0, 16, (WARPS, k, n))
    c = rng.integers(-99, 99, (WARPS, m, n)).astype(np.int32)

    def packed(elements: np.ndarray) -> list[np.ndarray]:
        pairs = elements.reshape(WARPS, 32, -1, 2)
        return registers((pairs[..., 0] | pairs[..., 1] << 4).astype(np.uint8), "u4")

    results = execute(
        f"mma.sync.aligned.{shape}.row.col.s32.{first}.{second}.s32",
        packed(fragments(a, A[f"{shape} 4"], m * k // 32)),
        packed(fragments(b, B[f"{shape} 4"], k * n // 32)),
        registers(fragments(c, place_c, m * n // 32), "i4"),
    )
    typed = [np.where(x > 7, x - 16, x) if word == "s4" else x for x, word in ((a, first), (b, second))]
    assert (matrices(results, "i4", shape) == typed[0] @ typed[1] + c).all()


@pytest.mark.parametrize("shape", ["m8n8k128", "m16n8k128", "m16n8k256"])
@pytest.mark.parametrize("operation", ["xor", "and"])
def test_bits(shape: str, operation: str) -> None:
    rng = np.random.default_rng(4)
    m, n, k = size(shape)
    a, b = rng.integers(0, 2, (WARPS, m, k)).astype(np.uint8), rng.integers(0, 2, (WARPS, k, n)).astype(np.uint8)
    c = rng.integers(-99, 99, (WARPS, m, n)).astype(np.int32)

    def packed(elements: np.ndarray) -> list[np.ndarray]:
        return registers(np.packbits(elements, axis=-1, bitorder="little"), "u4")

    results = execute(
        f"mma.sync.aligned.{shape}.row.col.s32.b1.b1.s32.{operation}.popc",
        packed(fragments(a, A[f"{shape} 1"], m * k // 32)),
        packed(fragments(b, B[f"{shape} 1"], k * n // 32)),
        registers(fragments(c, place_c, m * n // 32), "i4"),
    )
    logic = {"xor": np.bitwise_xor, "and": np.bitwise_and}[operation]
    want = logic(a[:, :, :, None], b[:, None, :, :]).sum(axis=2, dtype=np.int64) + c
    assert (matrices(results, "i4", shape) == want).all()


@pytest.mark.parametrize("shape", ["m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"])
@pytest.mark.parametrize("mode", ["", ".rz"])
def test_doubles(shape: str, mode: str) -> None:
    rng = np.random.default_rng(5)
    m, n, k = size(shape)
    a, b, c = (rng.integers(-99, 99, dims) / 8 for dims in ((WARPS, m, k), (WARPS, k, n), (WARPS, m, n)))
    results = execute(
        f"mma.sync.aligned.{shape}.row.col{mode}.f64.f64.f64.f64",
        registers(fragments(a, A[f"{shape} 64"], m * k // 32), "f8"),
        registers(fragments(b, B[f"{shape} 64"], k * n // 32), "f8"),
        registers(fragments(c, place_c, m * n // 32), "f8"),
    )
    assert (matrices(results, "f8", shape) == a @ b + c).all()  # small dyadic numbers: exact


def test_infinity_and_nan() -> None:
    """A product of infinity and zero poisons its element only, with the canonical NaN."""
    a, b = np.zeros((WARPS, 16, 16), np.float16), np.zeros((WARPS, 16, 8), np.float16)
    a[:, 3, 5] = np.inf
    b[:, 5, 2] = 1
    c = np.ones((WARPS, 16, 8), np.float32)
    results = execute(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        registers(fragments(a, A["m16n8k16 16"], 8), "u4"),
        registers(fragments(b, B["m16n8k16 16"], 4), "u4"),
        registers(fragments(c, place_c, 4), "f4"),
    )
    got = matrices(results, "u4", "m16n8k16")[0]
    assert got[3].tolist() == [0x7FFFFFFF, 0x7FFFFFFF, 0x7F800000, *[0x7FFFFFFF] * 5]
    assert (np.delete(got, 3, axis=0) == 0x3F800000).all()


def test_movmatrix() -> None:
    rng = np.random.default_rng(6)
    matrix = rng.integers(0, 1 << 16, (WARPS, 8, 8)).astype(np.uint16)
    (word,) = registers(fragments(matrix, lambda i: (GROUP, T * 2 + i), 2), "u4")
    (got,) = run(op_of("movmatrix.sync.aligned.m8n8.trans.b16"), np.ones((WARPS, 32), bool), word)
    (want,) = registers(fragments(matrix.transpose(0, 2, 1), lambda i: (GROUP, T * 2 + i), 2), "u4")
    assert (got == want).all()
