"""Triton kernels for the tests of the adapters. Triton reads their source, so they stand in a file of their own."""

# ruff: noqa: N803 - names as in Triton's tutorials

import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy

start_copy = getattr(async_copy, "async_load", None) or async_copy.async_copy_global_to_shared  # renamed in Triton 3.9


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask), mask=mask)


@triton.jit
def shift(x_ptr, out_ptr, n, by, BLOCK: tl.constexpr):
    """Reads beyond the end of x."""
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at + by))


@triton.jit
def scaled(out_ptr, values, factor, half, flag, small, BLOCK: tl.constexpr):
    """Scalars of several types, and a tuple of pointers."""
    at = tl.arange(0, BLOCK)
    total = tl.load(values[0] + at) * factor + tl.load(values[1] + at) * half + small
    tl.store(out_ptr + at, tl.where(flag, total, -total))


@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    a = a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak
    b = b_ptr + ks[:, None] * stride_bk + columns[None, :] * stride_bn
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, K, BLOCK_K):
        total = tl.dot(tl.load(a), tl.load(b), total)
        a += BLOCK_K * stride_ak
        b += BLOCK_K * stride_bk
    tl.store(c_ptr + rows[:, None] * stride_cm + columns[None, :], total.to(tl.float16))


@triton.jit
def matmul_host(a, b, c, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Descriptors from the host."""
    row, column = tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        total = tl.dot(a.load([row, k]), b.load([k, column]), total)
    c.store([row, column], total.to(tl.float16))


@triton.jit
def matmul_device(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Descriptors made on the device, in Triton's global scratch."""
    a = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BLOCK_M, BLOCK_K])
    b = tl.make_tensor_descriptor(b_ptr, shape=[K, N], strides=[N, 1], block_shape=[BLOCK_K, BLOCK_N])
    c = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N])
    row, column = tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        total = tl.dot(a.load([row, k]), b.load([k, column]), total)
    c.store([row, column], total.to(tl.float16))


configs = [triton.Config({"BLOCK": block}, num_warps=warps) for block, warps in ((256, 2), (128, 1))]


@triton.autotune(configs, key=["n"])
@triton.heuristics({"EVEN": lambda given: given["n"] % given["BLOCK"] == 0})
@triton.jit
def tuned(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) + EVEN, mask=mask)


@gluon.jit
def running_sum(x_ptr, out_ptr, steps, BLOCK: gl.constexpr, STAGES: gl.constexpr, PENDING: gl.constexpr):
    """A ring of stages filled by cp.async; right where PENDING is STAGES - 2."""
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, order=[0])
    at = gl.arange(0, BLOCK, layout)
    ring = gl.allocate_shared_memory(gl.float32, [STAGES, BLOCK], shared)
    total = gl.zeros([BLOCK], gl.float32, layout)
    for k in gl.static_range(STAGES - 1):
        start_copy(ring.index(k), x_ptr + k * BLOCK + at)
        async_copy.commit_group()
    for k in range(steps):
        async_copy.wait_group(PENDING)
        total += ring.index(k % STAGES).load(layout)
        ahead = k + STAGES - 1
        start_copy(ring.index(ahead % STAGES), x_ptr + ahead * BLOCK + at, mask=at < (steps - ahead) * BLOCK)
        async_copy.commit_group()
    gl.store(out_ptr + at, total)
