"""SIMD video instructions against the ISA's pseudo-code."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from ops_reference import as_words, clamp, integers, op_of, run, wrap

from consan.backends.cpu.semantics.ops import semantics

COMPUTE: dict[str, Callable[[int, int], int]] = {
    "vadd": lambda a, b: a + b,
    "vsub": lambda a, b: a - b,
    "vavrg": lambda a, b: (a + b + 1) >> 1 if a + b >= 0 else (a + b) >> 1,
    "vabsdiff": lambda a, b: abs(a - b),
    "vmin": min,
    "vmax": max,
}


def fields(value: int, bits: int, word: str) -> list[int]:
    return [wrap(value >> shift, bits, word == "s32") for shift in range(0, 32, bits)]


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("name", COMPUTE)
@pytest.mark.parametrize(("dest", "first", "second"), [("u32", "u32", "u32"), ("s32", "s32", "s32"), ("s32", "u32", "s32")])
def test_simd(name: str, count: int, dest: str, first: str, second: str) -> None:
    bits, rng = 32 // count, np.random.default_rng(1)
    a, b, c = (integers("u32", rng, 300) for _ in range(3))
    lanes = [
        [COMPUTE[name](x, y) for x, y in zip(fields(int(p), bits, first), fields(int(q), bits, second), strict=True)]
        for p, q in zip(a, b, strict=True)
    ]

    def packed(values: list[int]) -> int:
        return sum((value & ((1 << bits) - 1)) << (bits * i) for i, value in enumerate(values))

    opcode = f"{name}{count}.{dest}.{first}.{second}"
    assert as_words(run(op_of(opcode), a, b, c)[0]) == [packed(lane) for lane in lanes]
    clamped = [packed([clamp(value, bits, dest == "s32") for value in lane]) for lane in lanes]
    assert as_words(run(op_of(opcode + ".sat"), a, b, c)[0]) == clamped
    assert as_words(run(op_of(opcode + ".add"), a, b, c)[0]) == [(sum(lane) + int(z)) % 2**32 for lane, z in zip(lanes, c, strict=True)]


COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
SECOND: dict[str, Callable[[int, int], int]] = {"add": lambda a, b: a + b, "min": min, "max": max}


def typed(values: np.ndarray, word: str) -> list[int]:
    return [wrap(int(value), 32, word == "s32") for value in values]


def given(word: str, values: np.ndarray) -> np.ndarray:
    return values.view(np.int32 if word == "s32" else np.uint32)


@pytest.mark.parametrize("compare", COMPARE)
@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize(("first", "second"), [("u32", "u32"), ("s32", "s32"), ("u32", "s32")])
def test_comparisons_of_lanes(compare: str, count: int, first: str, second: str) -> None:
    bits, rng = 32 // count, np.random.default_rng(2)
    a, c = (integers("u32", rng, 200) for _ in range(2))
    b = np.where(rng.random(200) < 0.3, a, integers("u32", rng, 200)).astype(np.uint32)
    lanes = [
        [COMPARE[compare](x, y) for x, y in zip(fields(int(p), bits, first), fields(int(q), bits, second), strict=True)]
        for p, q in zip(a, b, strict=True)
    ]
    opcode = f"vset{count}.{first}.{second}.{compare}"
    assert as_words(run(op_of(opcode), a, b, c)[0]) == [sum(value << bits * i for i, value in enumerate(lane)) for lane in lanes]
    assert as_words(run(op_of(opcode + ".add"), a, b, c)[0]) == [(sum(lane) + int(z)) % 2**32 for lane, z in zip(lanes, c, strict=True)]


@pytest.mark.parametrize("name", ["vadd", "vsub", "vabsdiff", "vmin", "vmax"])
@pytest.mark.parametrize("sat", ["", ".sat"])
@pytest.mark.parametrize(
    ("dest", "first", "second"), [("u32", "u32", "u32"), ("s32", "s32", "s32"), ("u32", "s32", "u32"), ("s32", "u32", "s32")]
)
def test_scalars(name: str, sat: str, dest: str, first: str, second: str) -> None:
    rng = np.random.default_rng(3)
    a, b, c = (integers("u32", rng, 200) for _ in range(3))
    results = [COMPUTE[name](x, y) for x, y in zip(typed(a, first), typed(b, second), strict=True)]
    results = [clamp(value, 32, dest == "s32") % 2**32 if sat else value for value in results]
    results = [wrap(value, 32, dest == "s32") if sat else value for value in results]
    opcode, operands = f"{name}.{dest}.{first}.{second}{sat}", (given(first, a), given(second, b))
    assert as_words(run(op_of(opcode), *operands)[0]) == [value % 2**32 for value in results]
    for then, function in SECOND.items():
        if then != "add" and first != second:
            assert semantics(tuple(f"{opcode}.{then}".split("."))) is None  # a chip computes something else
            continue
        found = as_words(run(op_of(f"{opcode}.{then}"), *operands, given(dest, c))[0])
        assert found == [function(value, z) % 2**32 for value, z in zip(results, typed(c, dest), strict=True)]


@pytest.mark.parametrize("compare", COMPARE)
@pytest.mark.parametrize(("first", "second"), [("u32", "u32"), ("s32", "u32")])
def test_comparisons_of_scalars(compare: str, first: str, second: str) -> None:
    rng = np.random.default_rng(4)
    a, c = (integers("u32", rng, 200) for _ in range(2))
    b = np.where(rng.random(200) < 0.3, a, integers("u32", rng, 200)).astype(np.uint32)
    results = [int(COMPARE[compare](x, y)) for x, y in zip(typed(a, first), typed(b, second), strict=True)]
    opcode, operands = f"vset.{first}.{second}.{compare}", (given(first, a), given(second, b))
    assert as_words(run(op_of(opcode), *operands)[0]) == results
    assert as_words(run(op_of(f"{opcode}.add"), *operands, c)[0]) == [(value + int(z)) % 2**32 for value, z in zip(results, c, strict=True)]


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
@pytest.mark.parametrize(("dest", "first"), [("u32", "u32"), ("s32", "s32"), ("s32", "u32")])
def test_shifts_of_scalars(mode: str, dest: str, first: str) -> None:
    rng = np.random.default_rng(5)
    a, c = (integers("u32", rng, 300) for _ in range(2))
    b = np.where(rng.random(300) < 0.8, rng.integers(0, 35, 300), integers("u32", rng, 300)).astype(np.uint32)
    counts = [min(int(y), 32) if mode == "clamp" else int(y) & 31 for y in b]
    results = [x >> y for x, y in zip(typed(a, first), counts, strict=True)]
    opcode, operands = f"vshr.{dest}.{first}.u32", (given(first, a), b)
    assert as_words(run(op_of(f"{opcode}.{mode}"), *operands)[0]) == [value % 2**32 for value in results]
    clamped = [clamp(value, 32, dest == "s32") for value in results]
    assert as_words(run(op_of(f"{opcode}.sat.{mode}"), *operands)[0]) == [value % 2**32 for value in clamped]
    found = as_words(run(op_of(f"{opcode}.{mode}.add"), *operands, given(dest, c))[0])
    assert found == [(value + z) % 2**32 for value, z in zip(results, typed(c, dest), strict=True)]
