"""Launches of real kernels that use Hopper's asynchronous instructions: see `real_cases.py` for what a case is.

All are for sm_90a. Products have small integers as inputs, so their sums are exact in f32 in any order and results are compared bit
by bit; attention is compared within a tolerance.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import corpus
import numpy as np
import tensor_maps
from real_cases import Array, Built, Case, Dim3, Launch, Size

ARCH = "sm_90a"
MULTIPROCESSORS = 132
FULL = 2048  # M, N and K of matmuls on a GPU
STEPS = 4  # whole steps of K in a small product; a part of one follows. In attention: blocks of keys


def notes(name: str) -> dict[str, Any]:
    """What the compiler said about a kernel: threads, shared bytes, scratch, tensor maps, constants."""
    return _notes(name, ARCH)


@functools.cache
def _notes(name: str, arch: str) -> dict[str, Any]:
    return corpus.notes(corpus.get(f"{name}/{arch}").make())


def _cdiv(a: int, b: int) -> int:
    return -(-a // b)


# -- number formats that NumPy lacks -----------------------------------------------------------------------------------------------


def _to_bf16(values: Array) -> Array:
    bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def _e4m3_values() -> Array:
    """The value of each of the 256 codes, NaN as NaN."""
    codes = np.arange(256)
    exponent, fraction = codes >> 3 & 15, codes & 7
    size = np.where(exponent == 0, fraction * 2.0**-9, (8 + fraction) * 2.0 ** (exponent - 10.0))
    size[(codes & 127) == 127] = np.nan
    return np.where(codes & 128, -size, size).astype(np.float32)


def _to_e4m3(values: Array) -> Array:
    """Codes of values that the format has."""
    table = _e4m3_values()
    order = np.argsort(table[np.isfinite(table)], kind="stable")
    finite = np.flatnonzero(np.isfinite(table))[order]
    found = finite[np.searchsorted(table[finite], values)]
    assert np.array_equal(table[found], values)
    return found.astype(np.uint8)


@dataclass(frozen=True)
class Format:
    """How a buffer holds the integers of a matrix."""

    dtype: Any
    store: Callable[[Array], Array]


HALF = Format(np.float16, lambda values: values.astype(np.float16))
BF16 = Format(np.uint16, _to_bf16)
FP8 = Format(np.uint8, _to_e4m3)
FLOAT = Format(np.float32, lambda values: values.astype(np.float32))
INT8 = Format(np.int8, lambda values: values.astype(np.int8))
INT32 = Format(np.int32, lambda values: values.astype(np.int32))


# -- products ----------------------------------------------------------------------------------------------------------------------


@dataclass
class Product:
    """A (m, k) times b (k, n), which may lie transposed; c starts as bytes of ones."""

    a: Array
    b: Array
    c: Array
    wanted: Array
    m: int
    n: int
    k: int

    def check(self) -> None:
        """Bit by bit."""
        np.testing.assert_array_equal(self.c, self.wanted)

    def sizes(self) -> list[np.int32]:
        """M, N, K."""
        return [np.int32(value) for value in (self.m, self.n, self.k)]


def product(rng: np.random.Generator, sizes: Dim3, source: Format = HALF, out: Format = HALF, transposed: bool = True) -> Product:
    """Seeded inputs of a size."""
    m, n, k = sizes
    a, b = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    c = np.full((m, n), 0, out.dtype)
    c.view(np.uint8)[...] = 255
    held = np.ascontiguousarray(b.T) if transposed else b
    return Product(source.store(a), source.store(held), c, out.store(a @ b), m, n, k)


def sizes_for(name: str, size: Size) -> Dim3:
    """On the virtual machine one tile and a part of the next, and a K with a part of a step; on a GPU many."""
    if size == "full":
        return FULL, FULL, FULL
    constants = notes(name)["constants"]
    return constants["BLOCK_M"], constants["BLOCK_N"] + 16, constants["BLOCK_K"] * STEPS + 16


def grid_for(name: str, sizes: Dim3) -> int:
    """Number of tiles."""
    constants = notes(name)["constants"]
    return _cdiv(sizes[0], constants["BLOCK_M"]) * _cdiv(sizes[1], constants["BLOCK_N"])


def resident(name: str, sizes: Dim3) -> int:
    """CTAs of a persistent kernel: fewer than it has tiles."""
    return max(1, min(grid_for(name, sizes) // 2, MULTIPROCESSORS))


def triton_launch(name: str, grid: Dim3, arguments: list[Any], check: Callable[[], None]) -> Launch:
    """A launch as Triton's own launcher does it: the two scratch pointers come last."""
    said = notes(name)
    each, _ = said["scratch"]
    scratch = np.zeros(each * grid[0] * grid[1], np.uint8) if each else None
    last = [np.uint64(0) if scratch is None else scratch, np.uint64(0)]
    return Launch(grid, (said["threads"], 1, 1), [*arguments, *last], check, shared=said["shared"], scratch=scratch)


def _loads(name: str, source: Format = HALF, out: Format = HALF, *, transposed: bool = False, persistent: bool = False) -> Case:
    def make(size: Size, rng: np.random.Generator) -> Launch:
        sizes = sizes_for(name, size)
        p = product(rng, sizes, source, out, transposed)
        strides = [np.int32(p.k), np.int32(p.k if transposed else p.n), np.int32(p.n)]
        grid = (resident(name, sizes) if persistent else grid_for(name, sizes), 1, 1)
        return triton_launch(name, grid, [p.a, p.b, p.c, *p.sizes(), *strides], p.check)

    return Case(name, make)


def descriptor(array: Array, said: dict[str, Any]) -> list[Any]:
    """A tensor descriptor's parameters: the map, shape, strides."""
    strides = [step // array.itemsize for step in array.strides]
    return [tensor_maps.tiled(array, said), *map(np.int32, array.shape), *map(np.int64, strides)]


def descriptors(name: str, *arrays: Array, halved: bool = False) -> list[Any]:
    """The parameters of the descriptors that come first in a signature.

    `halved`: where Triton 3.6 specialises warps on Hopper, two warpgroups take half of the first operand's rows each and load them with a
    copy of their own, but what Triton tells its launcher is still the whole box. As it launches them they hang: a copy brings twice
    the bytes that are expected. With half the box they are right.
    """
    said = [dict(one) for one in notes(name)["maps"]]
    if halved and ARCH == "sm_90a":
        said[0]["block_size"] = [said[0]["block_size"][0] // 2, *said[0]["block_size"][1:]]
    return [part for array, one in zip(arrays, said, strict=True) for part in descriptor(array, one)]


def _maps(name: str, grid: Callable[[Dim3], Dim3] | None = None, *, halved: bool = False) -> Case:
    """A product whose operands, and often the result, have tensor maps from the host."""

    def make(size: Size, rng: np.random.Generator) -> Launch:
        sizes = sizes_for(name, size)
        p = product(rng, sizes)
        maps = len(notes(name)["maps"])
        arrays = (p.a, p.b, p.c)
        shape = grid(sizes) if grid else (grid_for(name, sizes), 1, 1)
        return triton_launch(name, shape, [*descriptors(name, *arrays[:maps], halved=halved), *arrays[maps:], *p.sizes()], p.check)

    return Case(name, make)


def _device_maps(name: str) -> Case:
    def make(size: Size, rng: np.random.Generator) -> Launch:
        sizes = sizes_for(name, size)
        p = product(rng, sizes)
        return triton_launch(name, (grid_for(name, sizes), 1, 1), [p.a, p.b, p.c, *p.sizes()], p.check)

    return Case(name, make)


def _two_dimensional(name: str) -> Callable[[Dim3], Dim3]:
    def grid(sizes: Dim3) -> Dim3:
        constants = notes(name)["constants"]
        return _cdiv(sizes[0], constants["BLOCK_M"]), _cdiv(sizes[1], constants["BLOCK_N"]), 1

    return grid


def _gluon(name: str) -> Case:
    return _maps(name, _two_dimensional(name))


def _persistent(name: str) -> Case:
    return _maps(name, lambda sizes: (resident(name, sizes), 1, 1))


# -- attention ---------------------------------------------------------------------------------------------------------------------


def _softmax(scores: Array) -> Array:
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def _attention(name: str, *, with_maps: bool = False, halved: bool = False) -> Case:
    def make(size: Size, rng: np.random.Generator) -> Launch:
        constants = notes(name)["constants"]
        heads, n, dim = (1, 64 * STEPS, constants["DIM"]) if size == "small" else (32, 2048, constants["DIM"])
        q, k, v = (rng.standard_normal((heads, n, dim)).astype(np.float16) for _ in range(3))
        out = np.full((heads, n, dim), np.nan, np.float16)

        def check() -> None:
            scores = q.astype(np.float32) @ k.astype(np.float32).transpose(0, 2, 1) / np.float32(8)
            if constants["CAUSAL"]:
                scores[:, ~np.tri(n, dtype=bool)] = -np.inf
            np.testing.assert_allclose(out.astype(np.float32), _softmax(scores) @ v.astype(np.float32), rtol=1e-2, atol=3e-3)

        scalars = [np.int32(n), np.float32(np.log2(np.e) / 8)]
        rows = [array.reshape(-1, dim) for array in (q, k, v)]
        arguments = [*descriptors(name, *rows, halved=halved), out] if with_maps else [q, k, v, out]
        return triton_launch(name, (n // constants["BLOCK_M"], heads, 1), [*arguments, *scalars], check)

    return Case(name, make)


# -- Gluon, element by element -----------------------------------------------------------------------------------------------------


def _scale(size: Size, rng: np.random.Generator) -> Launch:
    name = "gluon_hopper/scale_in_place"
    blocks, steps = (2, STEPS + 1) if size == "small" else (528, 16)
    x = rng.standard_normal((blocks * steps * 32, 32)).astype(np.float32)
    y = np.full_like(x, np.nan)

    def check() -> None:
        np.testing.assert_array_equal(y, x * np.float32(1.5))

    return triton_launch(name, (blocks, 1, 1), [*descriptors(name, x, y), np.int32(steps), np.float32(1.5)], check)


# -- CUDA C++ ----------------------------------------------------------------------------------------------------------------------

_RING = {"elem_type": 6, "swizzle": 3}


def _tma_gemm(size: Size, rng: np.random.Generator) -> Launch:
    """Two CTAs for four tiles, two of them in part outside; or as many CTAs as a GPU holds."""
    sizes, ctas = ((192, 144, 208), 2) if size == "small" else ((2048, 2048, 2048), MULTIPROCESSORS)
    p = product(rng, sizes)
    boxes = (p.a, (128, 64)), (p.b, (128, 64)), (p.c, (64, 64))
    maps = [tensor_maps.tiled(array, {**_RING, "block_size": box}) for array, box in boxes]
    shared = 4 * 2 * 128 * 64 * 2 + 128 * 128 * 2 + 2 * 4 * 8 + 1024
    return Launch((ctas, 1, 1), (384, 1, 1), [*maps, *p.sizes()], p.check, shared=shared)


def _bulk_pipeline(size: Size, rng: np.random.Generator) -> Launch:
    blocks, rows = (2, 8) if size == "small" else (1056, 64)
    values = rng.integers(-8, 9, (blocks, rows, 2, 128)).astype(np.float32)
    out = np.full((blocks, 128), np.nan, np.float32)

    def check() -> None:
        np.testing.assert_array_equal(out, values.sum((1, 2)))

    return Launch((blocks, 1, 1), (160, 1, 1), [values, out, np.int32(rows)], check)


# -- CUTLASS -----------------------------------------------------------------------------------------------------------------------


def _cutlass(name: str, sizes: Dim3, *, tutorial: bool = False, multiprocessors: int = 1) -> Case:
    """A kernel that CUTLASS's own host code launches; its tutorials' results have their rows innermost.

    Tutorials are launched in clusters of two, which share nothing but a barrier: on the virtual machine each CTA is a cluster of its own.
    `multiprocessors`: of the small case.
    """
    small = sizes

    def make(size: Size, rng: np.random.Generator) -> Launch:
        sizes, count = (small, multiprocessors) if size == "small" else ((2048, 2048, 2048), MULTIPROCESSORS)
        p = product(rng, sizes)
        held = _tutorial_layouts(p, name.endswith("_nt")) if tutorial else (p.a, p.b, p.c)

        @functools.cache
        def recorded(*addresses: int) -> corpus.Recorded:
            a, b, c = addresses
            return corpus.cutlass_launch(name, sizes, (a, b, c), count, tensor_maps.encode)

        shape = recorded(1 << 20, 1 << 30, 1 << 40)
        arguments = [Built(held, lambda *at, i=i: recorded(*at).arguments[i]) for i in range(len(shape.arguments))]

        def check() -> None:
            np.testing.assert_array_equal(held[2].T if tutorial else held[2], p.wanted)

        cluster = (1, 1, 1) if tutorial and size == "small" else shape.cluster
        return Launch(shape.grid, shape.block, arguments, check, shape.shared, entry=shape.entry, cluster=cluster)

    return Case(name, make)


def _tutorial_layouts(p: Product, m_innermost: bool) -> tuple[Array, Array, Array]:
    a, b = (np.ascontiguousarray(array.T) for array in (p.a, p.b)) if m_innermost else (p.a, p.b)
    return a, b, np.ascontiguousarray(p.c.T)


HOPPER_CASES = (
    _loads("triton_hopper/matmul_2_stages"),
    _loads("triton_hopper/matmul_3_stages"),
    _loads("triton_hopper/matmul_4_stages"),
    _loads("triton_hopper/matmul_transposed", transposed=True),
    _loads("triton_hopper/matmul_bf16", BF16, BF16),
    _loads("triton_hopper/matmul_fp8", FP8, HALF, transposed=True),
    _loads("triton_hopper/matmul_tf32", FLOAT, FLOAT, transposed=True),
    _loads("triton_hopper/matmul_int8", INT8, INT32, transposed=True),
    _loads("triton_hopper/matmul_persistent", persistent=True),
    _maps("triton_hopper/matmul_host_tma"),
    _maps("triton_hopper/matmul_host_tma_4_stages"),
    _maps("triton_hopper/matmul_specialised", halved=True),
    _persistent("triton_hopper/matmul_persistent_tma"),
    _device_maps("triton_hopper/matmul_device_tma"),
    _attention("triton_hopper/attention"),
    _attention("triton_hopper/attention_causal"),
    _attention("triton_hopper/attention_tma", with_maps=True),
    _attention("triton_hopper/attention_specialised", with_maps=True, halved=True),
    _gluon("gluon_hopper/matmul_specialised"),
    _gluon("gluon_hopper/matmul_specialised_8_warps"),
    _gluon("gluon_hopper/matmul_pipelined"),
    Case("gluon_hopper/scale_in_place", _scale),
    Case("nvrtc/tma_gemm", _tma_gemm),
    Case("nvrtc/bulk_pipeline", _bulk_pipeline),
    _cutlass("cutlass/wgmma_tn", (128, 128, 256), tutorial=True),
    _cutlass("cutlass/wgmma_nt", (128, 128, 256), tutorial=True),
    _cutlass("cutlass/wgmma_tma_tn", (256, 128, 256), tutorial=True),
    _cutlass("cutlass/wgmma_tma_nt", (256, 128, 256), tutorial=True),
    _cutlass("cutlass/gemm_specialised", (64, 80, 272)),
    _cutlass("cutlass/gemm_pingpong", (64, 144, 272)),
    _cutlass("cutlass/gemm_cooperative", (128, 80, 272)),
)

# Kernels for clusters of several CTAs. K has more steps than there are stages, so that stages are filled again.
CLUSTER_CASES = (
    _cutlass("cutlass/gemm_cooperative_cluster", (256, 64, 640), multiprocessors=2),
    _cutlass("cutlass/gemm_cluster", (128, 64, 1152), multiprocessors=2),
)

# What CUTLASS 4.2 lacks and later versions have: where no scope is named, an arrival at another CTA's barrier has that of the CTA (PTX ISA,
# "mbarrier.arrive"), so it does not release to the CTA that refills the stage (a warning, R-SCOPE).
_SCOPE = ("mbarrier.arrive.shared::cluster.b64", "mbarrier.arrive.release.cluster.shared::cluster.b64")
SCOPED = {case.name: _SCOPE for case in CLUSTER_CASES}

# What hangs on every device, since its launcher passes a box that does not fit its kernel (see `descriptors`).
HANGING_CASES = (_maps("triton_hopper/matmul_specialised"), _attention("triton_hopper/attention_specialised", with_maps=True))

# What gives wrong results in some schedules of the virtual machine, by faults of its own: the tutorial multiplies copies that other threads
# have not waited for; the epilogue of the other writes over operands that another warp's share of a product may still read.
RACY = frozenset({"cutlass/wgmma_tn", "cutlass/wgmma_nt", "cutlass/gemm_specialised"})

# Faults of the kernels themselves: name -> kinds of the errors that are found.
FAULTS = {
    # Each thread waits for its own cp.async copies; no barrier follows before the warpgroup multiplies what all threads copied.
    "cutlass/wgmma_tn": {"missing-wait"},
    "cutlass/wgmma_nt": {"missing-wait"},
    # The last rounds of the main loop still load tiles past the end of K; nobody waits for these before the CTA is gone.
    "cutlass/wgmma_tma_tn": {"lifetime"},
    "cutlass/wgmma_tma_nt": {"lifetime"},
    # Triton 3.6 initialises some mbarriers several times, and puts tiles over others that it never uses nor invalidates.
    "triton_hopper/matmul_specialised": {"barrier-misuse"},
    "triton_hopper/attention_specialised": {"barrier-misuse"},
}
