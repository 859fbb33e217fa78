"""SIMD video instructions against the ISA's pseudo-code."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from ops_reference import as_words, clamp, integers, op_of, run, wrap

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
