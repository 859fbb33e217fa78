"""Triton kernels that use tensor memory on sm_100. Triton reads their source, so they stand in a file of their own."""

# ruff: noqa: N803 - names as in Triton's tutorials

import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """C = A B, by tensor maps; with two CTAs the product is one of a pair."""
    row, column = tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        total = tl.dot(a.load([row, k]), b.load([k, column]), total)
    c.store([row, column], total.to(tl.float16))


@triton.jit
def persistent(a, b, c, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SMS: tl.constexpr):
    """C = A B^T: each program takes several tiles, and its warps are specialised."""
    columns = tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BLOCK_M) * columns, SMS, flatten=True, warp_specialize=True):
        row, column = tile // columns * BLOCK_M, tile % columns * BLOCK_N
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            total = tl.dot(a.load([row, k]), b.load([column, k]).T, total)
        c.store([row, column], total.to(tl.float16))


@triton.jit
def scaled(
    a_ptr, b_ptr, a_factors, b_factors, out_ptr, K: tl.constexpr, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr,
    FORMAT: tl.constexpr, VECTOR: tl.constexpr, PACKED: tl.constexpr,
):  # fmt: skip
    """A B^T of one tile, with a factor for every VECTOR elements of a row. Operands and factors come as bytes."""
    if PACKED == 1:
        a_ptr, b_ptr = a_ptr.to(tl.pointer_type(tl.float8e4nv)), b_ptr.to(tl.pointer_type(tl.float8e4nv))
    if VECTOR == 16:
        a_factors, b_factors = a_factors.to(tl.pointer_type(tl.float8e4nv)), b_factors.to(tl.pointer_type(tl.float8e4nv))
    rows, inner, each = tl.arange(0, BLOCK), tl.arange(0, BLOCK_K // PACKED), tl.arange(0, BLOCK_K // VECTOR)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(K // BLOCK_K):
        a = tl.load(a_ptr + rows[:, None] * (K // PACKED) + k * (BLOCK_K // PACKED) + inner[None, :])
        b = tl.load(b_ptr + rows[None, :] * (K // PACKED) + k * (BLOCK_K // PACKED) + inner[:, None])
        at = rows[:, None] * (K // VECTOR) + k * (BLOCK_K // VECTOR) + each[None, :]
        total = tl.dot_scaled(a, tl.load(a_factors + at), FORMAT, b, tl.load(b_factors + at), FORMAT, total)
    tl.store(out_ptr + rows[:, None] * BLOCK + rows[None, :], total)


@triton.jit
def attention(q, k, v, out, N, scale, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr):
    """softmax(Q K^T) V with specialised warps: the second product takes its left side from tensor memory."""
    row = tl.program_id(0) * BLOCK_M
    query = q.load([row, 0])
    most, total = tl.full((BLOCK_M,), float("-inf"), tl.float32), tl.zeros((BLOCK_M,), tl.float32)
    sums = tl.zeros((BLOCK_M, D), tl.float32)
    for n in tl.range(0, N, BLOCK_N, warp_specialize=True):
        scores = tl.dot(query, k.load([n, 0]).T) * scale
        largest = tl.maximum(most, tl.max(scores, 1))
        weights, shrink = tl.math.exp2(scores - largest[:, None]), tl.math.exp2(most - largest)
        total = total * shrink + tl.sum(weights, 1)
        sums = tl.dot(weights.to(tl.float16), v.load([n, 0]), sums * shrink[:, None])
        most = largest
    out.store([row, 0], (sums / total[:, None]).to(tl.float16))
