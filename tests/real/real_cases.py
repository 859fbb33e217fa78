"""Launches of the corpus's real kernels: seeded inputs at two sizes, and what a correct run leaves behind.

A case names a corpus entry (`tests/corpus`), so the PTX is what Triton, NVRTC, CuPy and Numba emit, untouched. Sums use integers or
floats of integer value wherever the order of additions is not fixed, so that results can be compared bit by bit.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Size = Literal["small", "full"]
Dim3 = tuple[int, int, int]


@dataclass(frozen=True)
class Struct:
    """A parameter passed by value; an array among the values stands for its device address."""

    layout: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Built:
    """A parameter whose bytes depend on device addresses, such as a tensor map: `build` gets the address of each array."""

    arrays: tuple[Array, ...]
    build: Callable[..., bytes]


@dataclass
class Launch:
    """One launch: arguments in order (arrays are buffers), and a check of the arrays that the run left."""

    grid: Dim3
    block: Dim3
    arguments: Sequence[Any]
    check: Callable[[], None]
    shared: int = 0
    cooperative: bool = False
    entry: str | None = None  # where a module has several
    cluster: Dim3 = (1, 1, 1)
    scratch: Array | None = None  # a buffer whose content is no result: tensor maps hold addresses, which differ from run to run

    def buffers(self) -> list[Array]:
        """The arrays among the arguments, those inside of structures too."""
        flat = [v for a in self.arguments for v in _parts(a)]
        return [value for value in flat if isinstance(value, np.ndarray)]

    def pack(self, address: Callable[[Array], int]) -> list[bytes]:
        """The bytes of each parameter."""
        return [_bytes(argument, address) for argument in self.arguments]


def _parts(argument: Any) -> tuple[Any, ...]:
    if isinstance(argument, Struct):
        return argument.values
    return argument.arrays if isinstance(argument, Built) else (argument,)


def _bytes(argument: Any, address: Callable[[Array], int]) -> bytes:
    if isinstance(argument, np.ndarray):
        return struct.pack("<Q", address(argument))
    if isinstance(argument, Built):
        return argument.build(*map(address, argument.arrays))
    if isinstance(argument, Struct):
        return struct.pack(argument.layout, *(address(v) if isinstance(v, np.ndarray) else v for v in argument.values))
    return bytes(argument.tobytes())


@dataclass(frozen=True)
class Case:
    """One kernel: its corpus entry without the architecture, and how to launch it.

    `lockstep`: its lanes exchange data through global memory with no barrier of their warp, so only a schedule that keeps the lanes
    in step gives the right result. `reads_past`: name of the header that reads shared memory which nobody wrote.
    """

    name: str
    make: Callable[[Size, np.random.Generator], Launch]
    lockstep: bool = False
    reads_past: str | None = None

    def launch(self, size: Size, seed: int) -> Launch:
        """Inputs of one size and seed."""
        return self.make(size, np.random.default_rng(seed))


def _cdiv(a: int, b: int) -> int:
    return -(-a // b)


def _integral(rng: np.random.Generator, *shape: int, low: int = -8, high: int = 9) -> Array:
    return rng.integers(low, high, shape).astype(np.float32)


def _equal(found: Array, wanted: Array) -> None:
    np.testing.assert_array_equal(found, wanted.astype(found.dtype))


# -- Triton ------------------------------------------------------------------------------------------------------------------------

_SCRATCH = (np.uint64(0), np.uint64(0))  # Triton's global and profiler scratch, which these kernels do not use


def _matmul(tile: int, shared: int, small: Dim3, full: Dim3) -> Callable[[Size, np.random.Generator], Launch]:
    def make(size: Size, rng: np.random.Generator) -> Launch:
        m, n, k = small if size == "small" else full
        a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n)))
        c = np.full((m, n), np.nan, np.float16)

        def check() -> None:
            wanted = a.astype(np.float32) @ b.astype(np.float32)
            np.testing.assert_allclose(c.astype(np.float32), wanted, rtol=2e-3, atol=2e-3 * math.sqrt(k))

        sizes = [np.int32(v) for v in (m, n, k, k, n, n)]
        grid = (_cdiv(m, tile) * _cdiv(n, tile), 1, 1)
        return Launch(grid, (128, 1, 1), [a, b, c, *sizes, *_SCRATCH], check, shared=shared)

    return make


def _softmax(size: Size, rng: np.random.Generator) -> Launch:
    rows, columns = (6, 704) if size == "small" else (4096, 1024)
    x = rng.standard_normal((rows, columns)).astype(np.float32) * 4
    y = np.full_like(x, np.nan)

    def check() -> None:
        e = np.exp(x - x.max(1, keepdims=True), dtype=np.float64)
        np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=2e-5, atol=1e-8)

    sizes = [np.int32(v) for v in (columns, columns, rows, columns)]
    return Launch((4 if size == "small" else 528, 1, 1), (256, 1, 1), [y, x, *sizes, *_SCRATCH], check, shared=32)


def _layer_norm(size: Size, rng: np.random.Generator) -> Launch:
    rows, columns = (3, 1360) if size == "small" else (2048, 8192)
    x = rng.standard_normal((rows, columns)).astype(np.float16)
    weight, bias = (rng.standard_normal(columns).astype(np.float16) for _ in range(2))
    y, mean, rstd = np.full_like(x, np.nan), np.zeros(rows, np.float32), np.zeros(rows, np.float32)

    def check() -> None:
        exact = x.astype(np.float64)
        deviation = np.sqrt(exact.var(1, keepdims=True) + 1e-5)
        wanted = (exact - exact.mean(1, keepdims=True)) / deviation * weight + bias
        np.testing.assert_allclose(mean, exact.mean(1), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(rstd, 1 / deviation[:, 0], rtol=1e-4)
        np.testing.assert_allclose(y, wanted, rtol=4e-3, atol=4e-3)

    scalars = (np.int32(columns), np.int32(columns), np.float32(1e-5))
    return Launch((rows, 1, 1), (256, 1, 1), [x, y, weight, bias, mean, rstd, *scalars, *_SCRATCH], check, shared=32)


# -- CUB ---------------------------------------------------------------------------------------------------------------------------


def _block_reduce(size: Size, rng: np.random.Generator) -> Launch:
    blocks = 4 if size == "small" else 100_000
    n = blocks * 128 - 50
    values, out = _integral(rng, n), np.zeros((blocks, 3), np.float32)

    def check() -> None:
        padded = np.zeros(blocks * 128, np.float32)
        padded[:n] = values
        tiles = padded.reshape(blocks, 128)
        _equal(out, np.stack([tiles.sum(1), (tiles**2).sum(1), tiles.max(1)], 1))

    return Launch((blocks, 1, 1), (128, 1, 1), [values, out, np.int32(n)], check)


def _block_scan(size: Size, rng: np.random.Generator) -> Launch:
    n = 1400 if size == "small" else 4_000_000
    values = rng.integers(-50, 50, n).astype(np.int32)
    out = np.zeros_like(values)

    def check() -> None:
        _equal(out, np.cumsum(values) - values)

    return Launch((1, 1, 1), (128, 1, 1), [values, out, np.int32(n)], check)


def _radix_sort(size: Size, rng: np.random.Generator) -> Launch:
    blocks = 2 if size == "small" else 20_000
    keys = rng.integers(0, 2**32, blocks * 512, dtype=np.uint64).astype(np.uint32)
    keys[::7] = keys[0]  # equal keys: the sort is stable
    values = np.arange(blocks * 512, dtype=np.int32)
    before = keys.reshape(blocks, 512).copy()

    def check() -> None:
        order = np.argsort(before, axis=1, kind="stable")
        _equal(keys.reshape(blocks, 512), np.take_along_axis(before, order, 1))
        _equal(values.reshape(blocks, 512), order + np.arange(blocks)[:, None] * 512)

    return Launch((blocks, 1, 1), (128, 1, 1), [keys, values], check)


def _merge_sort(size: Size, rng: np.random.Generator) -> Launch:
    blocks = 2 if size == "small" else 20_000
    n = blocks * 512 - 75  # a tail that is padded
    keys = rng.standard_normal(n)
    before = keys.copy()

    def check() -> None:
        tiles = np.full(blocks * 512, -np.inf)
        tiles[:n] = before
        _equal(keys, -np.sort(-tiles.reshape(blocks, 512), 1).ravel()[:n])

    return Launch((blocks, 1, 1), (128, 1, 1), [keys, np.int32(n)], check)


# -- CUDA C++ ----------------------------------------------------------------------------------------------------------------------


def _sgemm(size: Size, rng: np.random.Generator) -> Launch:
    n = 64 if size == "small" else 2048
    a, b = (_integral(rng, n, n) for _ in range(2))
    c = np.full((n, n), np.nan, np.float32)

    def check() -> None:
        _equal(c, a @ b)

    return Launch((n // 32, n // 32, 1), (256, 1, 1), [a, b, c, np.int32(n)], check)


def _moving_average(size: Size, rng: np.random.Generator) -> Launch:
    tiles = 7 if size == "small" else 2000
    n = tiles * 512 - 77
    values, out = _integral(rng, n), np.full(n, np.nan, np.float32)

    def check() -> None:
        padded = np.zeros(tiles * 512, np.float32)
        padded[:n] = values
        ring = padded.reshape(tiles, 512)
        wanted = (ring + np.roll(ring, -1, 1) + np.roll(ring, -2, 1)) / np.float32(3)
        np.testing.assert_allclose(out, wanted.ravel()[:n], rtol=1e-6)

    return Launch((1, 1, 1), (128, 1, 1), [values, out, np.int32(n)], check, shared=3 * 128 * 16)


def _cooperative_grid(size: Size, rng: np.random.Generator) -> Launch:
    blocks, n = (4, 5000) if size == "small" else (128, 3_000_000)
    values, partial, out = _integral(rng, n, low=-1, high=2), np.zeros(blocks, np.float32), np.zeros(1, np.float32)

    def check() -> None:
        _equal(out, values.sum(keepdims=True))

    return Launch((blocks, 1, 1), (256, 1, 1), [values, partial, out, np.int32(n)], check, cooperative=True)


# -- CuPy --------------------------------------------------------------------------------------------------------------------------


def _carray(values: Array) -> Struct:
    """CuPy's CArray<T, 1>: data, size, shape, strides."""
    return Struct("<4Q", (values, values.size, values.size, values.itemsize))


def _cindexer(size: int) -> Struct:
    return Struct("<3Q", (size, size, 0))


def _cupy_elementwise(size: Size, rng: np.random.Generator) -> Launch:
    n = 3000 if size == "small" else 10_000_000
    x, y, z = (_integral(rng, n) for _ in range(3))
    before = z.copy()

    def check() -> None:
        _equal(z, x * y + before)

    arguments = [_carray(x), _carray(y), _carray(z), _cindexer(n)]
    return Launch((_cdiv(n, 128), 1, 1), (128, 1, 1), arguments, check)


def _cupy_reduction(size: Size, rng: np.random.Generator) -> Launch:
    n = 5000 if size == "small" else 10_000_000
    x, y = _integral(rng, n, low=-1, high=2), np.zeros(1, np.float32)

    def check() -> None:
        np.testing.assert_allclose(y[0], np.sqrt(np.sum(x.astype(np.float64) ** 2)), rtol=1e-7)

    scalar = Struct("<2Q", (y, 1))
    arguments = [_carray(x), scalar, _cindexer(n), Struct("<Q", (1,)), np.int32(1)]
    return Launch((1, 1, 1), (512, 1, 1), arguments, check)


def _cupy_sum(size: Size, rng: np.random.Generator) -> Launch:
    segments, length = (3, 2500) if size == "small" else (2000, 20_000)
    x, out = _integral(rng, segments, length), np.zeros(segments, np.float32)

    def check() -> None:
        _equal(out, x.sum(1))

    return Launch((segments, 1, 1), (256, 1, 1), [x, out, np.int64(length), np.int64(0)], check)


def _cupy_partition(size: Size, rng: np.random.Generator) -> Launch:
    warps, k, spare = (4, 32, 4) if size == "small" else (512, 64, 4)
    n = warps * (300 if size == "small" else 4000)
    values = rng.permutation(n).astype(np.float32)
    before = values.reshape(warps, -1).copy()

    def check() -> None:
        after = values.reshape(warps, -1)
        _equal(np.sort(after, 1), np.sort(before, 1))
        _equal(after[:, :k], np.sort(before, 1)[:, :k])

    arguments = [_carray(values), np.int32(k), np.int64(n), np.int32(spare), np.int64(warps)]
    return Launch((warps, 1, 1), (32, 1, 1), arguments, check, entry="partition_kernel")


def _cupy_jit_sum(size: Size, rng: np.random.Generator) -> Launch:
    blocks, n = (3, 2500) if size == "small" else (1056, 10_000_000)
    x, out = _integral(rng, n), np.zeros(blocks, np.float32)

    def check() -> None:
        padded = np.zeros(_cdiv(n, blocks * 256) * blocks * 256, np.float32)
        padded[:n] = x
        _equal(out, padded.reshape(-1, blocks, 256).sum((0, 2)))

    return Launch((blocks, 1, 1), (256, 1, 1), [_carray(x), _carray(out), np.uint32(n)], check)


# -- Numba -------------------------------------------------------------------------------------------------------------------------


def _numba_array(values: Array) -> list[Any]:
    """Numba passes an array as seven parameters: meminfo, parent, size, item size, data, shape, strides."""
    zero = np.uint64(0)
    return [zero, zero, np.uint64(values.size), np.uint64(values.itemsize), values, np.uint64(values.size), np.uint64(values.itemsize)]


def _numba_sum(per_block: bool) -> Callable[[Size, np.random.Generator], Launch]:
    def make(size: Size, rng: np.random.Generator) -> Launch:
        blocks = 4 if size == "small" else 40_000
        n = blocks * 256 - 100
        values = _integral(rng, n, low=-1, high=2)
        out = np.zeros(blocks if per_block else 1, np.float32)

        def check() -> None:
            padded = np.zeros(blocks * 256, np.float32)
            padded[:n] = values
            _equal(out, padded.reshape(-1, 256).sum(1) if per_block else padded.sum(keepdims=True))

        return Launch((blocks, 1, 1), (256, 1, 1), [*_numba_array(values), *_numba_array(out)], check)

    return make


def _numba_histogram(size: Size, rng: np.random.Generator) -> Launch:
    blocks = 4 if size == "small" else 40_000
    values = rng.integers(0, 64, blocks * 256 - 100).astype(np.int32)
    bins = np.zeros(64, np.int32)

    def check() -> None:
        _equal(bins, np.bincount(values, minlength=64))

    return Launch((blocks, 1, 1), (256, 1, 1), [*_numba_array(values), *_numba_array(bins)], check)


CASES = (
    Case("triton/matmul", _matmul(128, 32768, (144, 160, 112), (2048, 2048, 2048))),
    Case("triton/matmul_small", _matmul(32, 8192, (48, 64, 144), (1024, 1024, 1024))),
    Case("triton/softmax", _softmax),
    Case("triton/layer_norm", _layer_norm),
    Case("nvrtc/block_reduce", _block_reduce),
    Case("nvrtc/block_scan", _block_scan),
    Case("nvrtc/block_radix_sort", _radix_sort),
    # SerialMerge loads the key after the last one, which it then does not use: its storage has one key more for that.
    Case("nvrtc/block_merge_sort", _merge_sort, reads_past="block_merge_sort.cuh"),
    Case("nvrtc/sgemm_tiled", _sgemm),
    Case("nvrtc/cp_async_pipeline", _moving_average),
    Case("nvrtc/cooperative_grid", _cooperative_grid),
    Case("cupy/elementwise", _cupy_elementwise),
    Case("cupy/reduction", _cupy_reduction),
    Case("cupy/cub_sum", _cupy_sum),
    Case("cupy/partition", _cupy_partition, lockstep=True),
    Case("cupy/jit_sum", _cupy_jit_sum),
    Case("numba/block_sum", _numba_sum(False)),
    Case("numba/warp_sum", _numba_sum(True)),
    Case("numba/histogram", _numba_histogram),
)
