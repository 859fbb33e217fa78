"""Triton kernels that compile to Hopper's asynchronous instructions: `python triton_hopper.py NAME ARCH` prints PTX.

Runs in any interpreter that has Triton 3.6; imports nothing of consan. The first line of the PTX is a comment with what a launch
needs, as JSON: `threads`, `shared` (dynamic bytes), `scratch` (bytes of global scratch for each CTA, and their alignment), `maps` (what
Triton says about each tensor descriptor argument: swizzle mode, element size and type, box), `constants` and `options`.

How Triton's launcher passes arguments: pointers and numbers as they are, constants not at all; a tensor descriptor as a CUtensorMap by
value (128 bytes), then its shape (i32 each), then its strides (i64 each); after the last argument two pointers, global scratch (device-side
descriptors live there) and profiler scratch.
"""

# ruff: noqa: N803 - argument names are those of Triton's tutorials, which users will recognise in reports

import json
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def tile_of(pid, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr):
    blocks_m, blocks_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    group = pid // (GROUP_M * blocks_n)
    size_m = min(blocks_m - group * GROUP_M, GROUP_M)
    inside = pid % (GROUP_M * blocks_n)
    return group * GROUP_M + inside % size_m, inside // size_m


@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    block_m, block_n = tile_of(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    rows = block_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = block_n * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (rows % M)[:, None] * stride_am + ks[None, :] * stride_ak
    b_ptrs = b_ptr + ks[:, None] * stride_bk + (columns % N)[None, :] * stride_bn
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32 if c_ptr.dtype.element_ty == tl.int32 else tl.float32)
    for k in range(tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=ks[None, :] < K - k * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=ks[:, None] < K - k * BLOCK_K, other=0.0)
        accumulator = tl.dot(a, b, accumulator, out_dtype=accumulator.dtype)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    c_ptrs = c_ptr + stride_cm * rows[:, None] + columns[None, :]
    tl.store(c_ptrs, accumulator.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def matmul_host_tma(
    a_desc, b_desc, c_desc, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    block_m, block_n = tile_of(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in tl.range(tl.cdiv(K, BLOCK_K)):
        a = a_desc.load([block_m * BLOCK_M, k * BLOCK_K])
        b = b_desc.load([block_n * BLOCK_N, k * BLOCK_K])
        accumulator = tl.dot(a, b.T, accumulator)
    c_desc.store([block_m * BLOCK_M, block_n * BLOCK_N], accumulator.to(tl.float16))


@triton.jit
def matmul_specialised(
    a_desc, b_desc, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    block_m, block_n = tile_of(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in tl.range(tl.cdiv(K, BLOCK_K), warp_specialize=True):
        a = a_desc.load([block_m * BLOCK_M, k * BLOCK_K])
        b = b_desc.load([block_n * BLOCK_N, k * BLOCK_K])
        accumulator = tl.dot(a, b.T, accumulator)
    rows = block_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = block_n * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + N * rows[:, None] + columns[None, :], accumulator.to(tl.float16), mask=mask)


@triton.jit
def matmul_device_tma(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[K, 1], block_shape=[BLOCK_N, BLOCK_K])
    c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N])
    block_m, block_n = tile_of(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(tl.cdiv(K, BLOCK_K)):
        a = a_desc.load([block_m * BLOCK_M, k * BLOCK_K])
        b = b_desc.load([block_n * BLOCK_N, k * BLOCK_K])
        accumulator = tl.dot(a, b.T, accumulator)
    c_desc.store([block_m * BLOCK_M, block_n * BLOCK_N], accumulator.to(tl.float16))


@triton.jit
def matmul_persistent(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        block_m, block_n = tile_of(tile, M, N, BLOCK_M, BLOCK_N, GROUP_M)
        rows = block_m * BLOCK_M + tl.arange(0, BLOCK_M)
        columns = block_n * BLOCK_N + tl.arange(0, BLOCK_N)
        safe_rows = tl.max_contiguous(tl.multiple_of(tl.where(rows < M, rows, 0), BLOCK_M), BLOCK_M)
        safe_columns = tl.max_contiguous(tl.multiple_of(tl.where(columns < N, columns, 0), BLOCK_N), BLOCK_N)
        accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(tl.cdiv(K, BLOCK_K)):
            here = k * BLOCK_K + ks
            a = tl.load(a_ptr + safe_rows[:, None] * stride_am + here[None, :], mask=here[None, :] < K, other=0.0)
            b = tl.load(b_ptr + here[:, None] * stride_bk + safe_columns[None, :], mask=here[:, None] < K, other=0.0)
            accumulator = tl.dot(a, b, accumulator)
        mask = (rows[:, None] < M) & (columns[None, :] < N)
        tl.store(c_ptr + stride_cm * rows[:, None] + columns[None, :], accumulator.to(tl.float16), mask=mask)


@triton.jit
def matmul_persistent_tma(
    a_desc, b_desc, c_desc, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        block_m, block_n = tile_of(tile, M, N, BLOCK_M, BLOCK_N, GROUP_M)
        accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(tl.cdiv(K, BLOCK_K)):
            a = a_desc.load([block_m * BLOCK_M, k * BLOCK_K])
            b = b_desc.load([block_n * BLOCK_N, k * BLOCK_K])
            accumulator = tl.dot(a, b.T, accumulator)
        c_desc.store([block_m * BLOCK_M, block_n * BLOCK_N], accumulator.to(tl.float16))


@triton.jit
def attention_step(accumulator, total, biggest, q, k, v, scale, mask, MASKED: tl.constexpr):
    scores = tl.dot(q, k) * scale
    if MASKED:
        scores = tl.where(mask, scores, -1.0e6)
    new = tl.maximum(biggest, tl.max(scores, 1))
    weights = tl.math.exp2(scores - new[:, None])
    rescale = tl.math.exp2(biggest - new)
    accumulator = tl.dot(weights.to(tl.float16), v, accumulator * rescale[:, None])
    return accumulator, total * rescale + tl.sum(weights, 1), new


@triton.jit
def attention(
    q_ptr, k_ptr, v_ptr, out_ptr, n, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, DIM: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    head, start = tl.program_id(1) * n * DIM, tl.program_id(0) * BLOCK_M
    rows, ks, dims = start + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, DIM)
    q = tl.load(q_ptr + head + rows[:, None] * DIM + dims[None, :])
    accumulator = tl.zeros((BLOCK_M, DIM), dtype=tl.float32)
    total, biggest = tl.zeros((BLOCK_M,), dtype=tl.float32), tl.full((BLOCK_M,), -1.0e30, dtype=tl.float32)
    end = start + BLOCK_M if CAUSAL else n
    for at in range(0, end, BLOCK_N):
        k = tl.load(k_ptr + head + (at + ks)[None, :] * DIM + dims[:, None])
        v = tl.load(v_ptr + head + (at + ks)[:, None] * DIM + dims[None, :])
        mask = rows[:, None] >= (at + ks)[None, :]
        accumulator, total, biggest = attention_step(accumulator, total, biggest, q, k, v, scale, mask, CAUSAL)
    tl.store(out_ptr + head + rows[:, None] * DIM + dims[None, :], (accumulator / total[:, None]).to(tl.float16))


@triton.jit
def attention_tma(
    q_desc, k_desc, v_desc, out_ptr, n, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, DIM: tl.constexpr, CAUSAL: tl.constexpr, SPECIALISE: tl.constexpr,
):  # fmt: skip
    head, start = tl.program_id(1) * n, tl.program_id(0) * BLOCK_M
    rows, ks = start + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    q = q_desc.load([head + start, 0])
    accumulator = tl.zeros((BLOCK_M, DIM), dtype=tl.float32)
    total, biggest = tl.zeros((BLOCK_M,), dtype=tl.float32), tl.full((BLOCK_M,), -1.0e30, dtype=tl.float32)
    end = start + BLOCK_M if CAUSAL else n
    for at in tl.range(0, end, BLOCK_N, warp_specialize=SPECIALISE):
        k = k_desc.load([head + at, 0]).T
        v = v_desc.load([head + at, 0])
        mask = rows[:, None] >= (at + ks)[None, :]
        accumulator, total, biggest = attention_step(accumulator, total, biggest, q, k, v, scale, mask, CAUSAL)
    out_ptrs = out_ptr + (head + rows)[:, None] * DIM + tl.arange(0, DIM)[None, :]
    tl.store(out_ptrs, (accumulator / total[:, None]).to(tl.float16))


def pointers(kind, *names):
    return dict.fromkeys(names, f"*{kind}")


def descriptors(*boxes):
    return [f"tensordesc<fp16[{rows}, {columns}]>" for rows, columns in boxes]


def integers(*names):
    return dict.fromkeys(names, "i32")


def tiles(m, n, k, group=8, **more):
    return {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": group, **more}


def loads(kind, out, m, n, k, transposed=False, **options):
    """A matmul with cp.async; what is a unit stride is a constant, as Triton's own launcher makes it."""
    signature = {
        **pointers(kind, "a_ptr", "b_ptr"),
        **pointers(out, "c_ptr"),
        **integers("M", "N", "K", "stride_am", "stride_bn" if transposed else "stride_bk", "stride_cm"),
    }
    unit = {"stride_ak": 1, "stride_bk" if transposed else "stride_bn": 1}
    return matmul, signature, {**tiles(m, n, k), **unit}, options


def tensor_maps(function, m, n, k, **options):
    signature = dict(zip(("a_desc", "b_desc", "c_desc"), descriptors((m, k), (n, k), (m, n)), strict=True))
    return function, {**signature, **integers("M", "N", "K")}, tiles(m, n, k), options


HALF = {**pointers("fp16", "a_ptr", "b_ptr", "c_ptr"), **integers("M", "N", "K")}
ATTENTION = {**pointers("fp16", "q_ptr", "k_ptr", "v_ptr", "out_ptr"), "n": "i32", "scale": "fp32"}
HEADS = {"BLOCK_M": 64, "BLOCK_N": 64, "DIM": 64}


def attention_maps(m, specialise, **options):
    signature = dict(zip(("q_desc", "k_desc", "v_desc"), descriptors((m, 64), (64, 64), (64, 64)), strict=True))
    constants = {**HEADS, "BLOCK_M": m, "CAUSAL": False, "SPECIALISE": specialise}
    return attention_tma, {**signature, "out_ptr": "*fp16", "n": "i32", "scale": "fp32"}, constants, options


def specialised(m, n, k, **options):
    signature = dict(zip(("a_desc", "b_desc"), descriptors((m, k), (n, k)), strict=True))
    return matmul_specialised, {**signature, "c_ptr": "*fp16", **integers("M", "N", "K")}, tiles(m, n, k), options


# name -> (function, signature, constants, options)
KERNELS = {
    "matmul_2_stages": loads("fp16", "fp16", 64, 64, 64, num_warps=4, num_stages=2),
    "matmul_3_stages": loads("fp16", "fp16", 128, 128, 64, num_warps=8, num_stages=3),
    "matmul_4_stages": loads("fp16", "fp16", 128, 64, 32, num_warps=4, num_stages=4),
    "matmul_transposed": loads("fp16", "fp16", 64, 128, 64, transposed=True, num_warps=4, num_stages=3),
    "matmul_bf16": loads("bf16", "bf16", 128, 64, 64, num_warps=4, num_stages=3),
    "matmul_fp8": loads("fp8e4nv", "fp16", 64, 64, 128, transposed=True, num_warps=4, num_stages=3),
    "matmul_tf32": loads("fp32", "fp32", 64, 64, 32, transposed=True, num_warps=4, num_stages=3),
    "matmul_int8": loads("i8", "i32", 64, 64, 64, transposed=True, num_warps=4, num_stages=3),
    "matmul_host_tma": tensor_maps(matmul_host_tma, 128, 128, 64, num_warps=8, num_stages=3),
    "matmul_host_tma_4_stages": tensor_maps(matmul_host_tma, 64, 64, 64, num_warps=4, num_stages=4),
    "matmul_specialised": specialised(128, 64, 64, num_warps=4, num_stages=3),
    "matmul_device_tma": (matmul_device_tma, HALF, tiles(64, 64, 64), {"num_warps": 4, "num_stages": 3}),
    "matmul_persistent": (
        matmul_persistent,
        {**HALF, **integers("stride_am", "stride_bk", "stride_cm")},
        tiles(64, 64, 64),
        {"num_warps": 4, "num_stages": 3},
    ),
    "matmul_persistent_tma": tensor_maps(matmul_persistent_tma, 64, 64, 64, num_warps=4, num_stages=3),
    "attention": (attention, ATTENTION, {**HEADS, "CAUSAL": False}, {"num_warps": 4, "num_stages": 3}),
    "attention_causal": (attention, ATTENTION, {**HEADS, "CAUSAL": True}, {"num_warps": 4, "num_stages": 2}),
    "attention_tma": attention_maps(64, False, num_warps=4, num_stages=3),
    "attention_specialised": attention_maps(128, True, num_warps=4, num_stages=2),
}


def compile_ptx(name, arch):
    function, signature, constants, options = KERNELS[name]
    order = function.arg_names
    full = {name: signature.get(name, "constexpr") for name in order}
    # What Triton's own launcher says about arguments divisible by 16; without it no cp.async is wide enough to be used.
    divisible = [argument for argument in signature if not argument.endswith(("_desc", "scale"))]
    attributes = {(order.index(argument),): [["tt.divisibility", 16]] for argument in divisible}
    source = ASTSource(fn=function, signature=full, constexprs={(order.index(k),): v for k, v in constants.items()}, attrs=attributes)
    compiled = triton.compile(source, target=GPUTarget("cuda", int(arch.removeprefix("sm_").rstrip("af")), 32), options=options)
    return notes(compiled.metadata, constants, options) + compiled.asm["ptx"]


def notes(metadata, constants, options):
    found = {
        "threads": metadata.num_warps * 32,
        "shared": metadata.shared,
        "scratch": [metadata.global_scratch_size, metadata.global_scratch_align],
        "maps": metadata.tensordesc_meta or [],
        "constants": constants,
        "options": options,
    }
    return f"// consan-corpus: {json.dumps(found)}\n"


if __name__ == "__main__":
    sys.stdout.write(compile_ptx(sys.argv[1], sys.argv[2]))
