"""The wide form of fma.rn.f32 gives the bits of the reference, whatever its operands are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from consan.backends.cpu.semantics.fused import FUSED, fused_full
from consan.backends.cpu.semantics.ops import semantics

ZEROS_AND_SUBNORMALS = (0, 0x80000000, 1, 0x807FFFFF)
OTHERS = (0x00800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00001, 0x3F800000, 0xBF800001, 0x33800000)
SPECIAL = ZEROS_AND_SUBNORMALS + OTHERS


def check(operands: list[np.ndarray]) -> None:
    (parts,) = FUSED - {("mad", "rn", "f32")}
    op = semantics(parts)
    assert op is not None
    out = np.zeros(operands[0].shape, np.float32)
    with np.errstate(all="ignore"):
        fused_full(op.fn, operands, out)()
        expected = np.asarray(op.fn(*operands))
    np.testing.assert_array_equal(out.view(np.uint32), expected.view(np.uint32))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 2**32 - 1) | st.sampled_from(SPECIAL)] * 3), min_size=1, max_size=20))
def test_any_bits(rows: list[tuple[int, int, int]]) -> None:
    check([np.array(column, np.uint32).view(np.float32) for column in zip(*rows, strict=True)])


@pytest.mark.parametrize("scale", [1.0, 1e-20, 1e-38, 1e30])
def test_values_of_every_size(scale: float) -> None:
    rng = np.random.default_rng(7)
    check([(rng.standard_normal(4096) * factor).astype(np.float32) for factor in (scale, 1.0, scale)])


def test_halfway_sums_and_exact_zeros() -> None:
    rows = ([1, 1, 3, 0, -1], [2**-24, 2**-24 + 2**-47, 1, 5, 1], [1, 1, -3, 0, 1])
    check([np.array(row, np.float32) for row in rows])


def test_the_output_may_be_a_source() -> None:
    op = semantics(("fma", "rn", "f32"))
    assert op is not None
    values = np.array([1, 1 + 2**-23, np.nan, 1e-39], np.float32)
    scaled = np.array([2**-24] * 4, np.float32)
    expected = np.asarray(op.fn(values, scaled, values)).view(np.uint32).copy()
    fused_full(op.fn, [values, scaled, values], values)()
    np.testing.assert_array_equal(values.view(np.uint32), expected)
