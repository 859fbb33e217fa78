"""Triton kernels for sm_100 on the virtual machine: unmodified PTX, right results. Skipped where Triton is not installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import consan.triton

triton = pytest.importorskip("triton", reason="Triton is not installed")
import blackwell_kernels as kernels  # noqa: E402 - needs Triton

pytestmark = pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")  # Triton 3.9 warns unless it is set
Array = np.ndarray[Any, Any]
RNG = np.random.default_rng
E2M1 = np.array([sign * value for sign in (1, -1) for value in (0, 0.5, 1, 1.5, 2, 3, 4, 6)])
E4M3 = np.array([(-1) ** (c >> 7) * np.ldexp((8 if c & 0x78 else 0) + (c & 7), max(c >> 3 & 15, 1) - 10) for c in range(256)])


def descriptors(*arrays: tuple[Array, list[int]]) -> list[Any]:
    from triton.tools.tensor_descriptor import TensorDescriptor

    return [TensorDescriptor.from_tensor(array, block) for array, block in arrays]


def integers(*shape: int) -> Array:
    return RNG(0).integers(-3, 4, shape).astype(np.float16)


def checked(launch: Callable[[], Any], seed: int = 0, known: frozenset[str] = frozenset()) -> str:
    """Launch without errors or warnings of other kinds than those known; the PTX."""
    with consan.triton.cpu(arch="sm_100", seed=seed) as report:
        kernel = launch()
    assert {finding.kind for finding in report.findings if finding.severity != "note"} <= known
    assert not any("does not execute" in reason for reason in report.incomplete)
    return str(kernel.asm["ptx"])


@pytest.mark.parametrize("ctas", [1, 2])
def test_matmul(ctas: int) -> None:
    """Two CTAs are a pair. Triton 3.6 allocates for it before the peer is known to run: a finding, and none of consan's mistakes."""
    rows = 128 * ctas
    a, b, c = integers(rows, 128), integers(128, 128), np.full((rows, 128), np.nan, np.float16)
    sizes = {"BLOCK_M": rows, "BLOCK_N": 128, "BLOCK_K": 64}

    def launch() -> Any:
        maps = descriptors((a, [rows, 64]), (b, [64, 128]), (c, [rows, 128]))
        return kernels.matmul[(1, 1)](*maps, 128, **sizes, num_ctas=ctas)

    ptx = checked(launch, ctas - 1, frozenset(("lifetime",)) if ctas == 2 else frozenset())
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    assert "tcgen05.mma.cta_group::" in ptx
    assert "cp.async.bulk.tensor" in ptx


def test_persistent_matmul_with_specialised_warps() -> None:
    a, b, c = integers(256, 64), integers(256, 64), np.full((256, 256), np.nan, np.float16)
    sizes = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "SMS": 2}
    ptx = checked(lambda: kernels.persistent[(2,)](*descriptors((a, [128, 64]), (b, [128, 64]), (c, [128, 128])), 256, 256, 64, **sizes))
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)
    assert "setmaxnreg" in ptx


@pytest.mark.parametrize(("name", "vector"), [("e4m3", 32), ("e2m1", 32), ("e2m1", 16)])
def test_block_scaled_products(name: str, vector: int) -> None:
    """mxfp8, mxfp4 and nvfp4: codes and factors against the formats' definitions."""
    rng, block, depth = RNG(1), 128, 128

    def operand() -> tuple[Array, Array]:
        if name == "e4m3":
            codes = rng.choice(np.flatnonzero(np.abs(E4M3) < 16), (block, depth)).astype(np.uint8)
            return codes, E4M3[codes]
        codes = rng.integers(0, 16, (block, depth)).astype(np.uint8)
        return codes[:, ::2] | codes[:, 1::2] << 4, E2M1[codes]

    def factor() -> tuple[Array, Array]:
        low, high = (124, 131) if vector == 32 else (0x28, 0x50)  # ue8m0, ue4m3
        codes = rng.integers(low, high, (block, depth // vector)).astype(np.uint8)
        return codes, np.repeat(np.exp2(codes - 127.0) if vector == 32 else E4M3[codes], vector, 1)

    (a, left), (b, right), (fa, by), (fb, by_too) = operand(), operand(), factor(), factor()
    out = np.full((block, block), np.nan, np.float32)
    form = {"FORMAT": name, "VECTOR": vector, "PACKED": 1 if name == "e4m3" else 2}
    ptx = checked(lambda: kernels.scaled[(1,)](a, b, fa, fb, out, K=depth, BLOCK=block, BLOCK_K=depth, **form))
    np.testing.assert_allclose(out, (left * by) @ (right * by_too).T, rtol=1e-5, atol=1e-2)
    assert "block_scale" in ptx


def test_attention_with_specialised_warps() -> None:
    q, k, v = RNG(2).standard_normal((3, 128, 64)).astype(np.float16)
    out, scale = np.full((128, 64), np.nan, np.float16), 0.18
    maps = (q, [128, 64]), (k, [64, 64]), (v, [64, 64]), (out, [128, 64])
    ptx = checked(lambda: kernels.attention[(1,)](*descriptors(*maps), 128, scale, BLOCK_M=128, BLOCK_N=64, D=64))
    weights = np.exp2(scale * (q.astype(np.float32) @ k.astype(np.float32).T))
    np.testing.assert_allclose(out, weights @ v / weights.sum(1, keepdims=True), atol=2e-3)
    assert "setmaxnreg" in ptx


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_tiles_of_programs_that_have_not_started(seed: int) -> None:
    pytest.importorskip("triton.experimental.gluon.language.nvidia.blackwell.clc", reason="this Triton has no cluster launch control")
    from launch_control_kernels import visits

    out, ran = np.zeros((9, 128), np.int32), np.zeros(1, np.int32)
    ptx = checked(lambda: visits[(9,)](out, ran, BLOCK=128), seed)
    np.testing.assert_array_equal(out, np.repeat(np.arange(1, 10), 128).reshape(9, 128))
    assert (ran[0] == 9) == (seed == 1)  # with seed 1 all start
    assert "clusterlaunchcontrol.try_cancel" in ptx
