"""Triton kernels in the style of its tutorials, compiled to PTX without a GPU: `python triton_kernels.py NAME ARCH` prints PTX.

Runs in any interpreter that has Triton 3; imports nothing of consan.
"""

# ruff: noqa: N803 - argument names are those of Triton's tutorials, which users will recognise in reports

import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def vector_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask), mask=mask)


@triton.jit
def softmax(out_ptr, in_ptr, in_stride, out_stride, rows, columns, BLOCK: tl.constexpr):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        offsets = tl.arange(0, BLOCK)
        mask = offsets < columns
        values = tl.load(in_ptr + row * in_stride + offsets, mask=mask, other=-float("inf"))
        numerator = tl.exp(values - tl.max(values, axis=0))
        tl.store(out_ptr + row * out_stride + offsets, numerator / tl.sum(numerator, axis=0), mask=mask)


@triton.jit
def layer_norm(x_ptr, y_ptr, weight_ptr, bias_ptr, mean_ptr, rstd_ptr, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * stride
    y_ptr += row * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + columns, mask=columns < n, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / n
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + columns, mask=columns < n, other=0.0).to(tl.float32)
        x = tl.where(columns < n, x - mean, 0.0)
        total += x * x
    rstd = 1 / tl.sqrt(tl.sum(total, axis=0) / n + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        mask = columns < n
        x = tl.load(x_ptr + columns, mask=mask, other=0.0).to(tl.float32)
        y = (x - mean) * rstd * tl.load(weight_ptr + columns, mask=mask) + tl.load(bias_ptr + columns, mask=mask)
        tl.store(y_ptr + columns, y, mask=mask)


@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    blocks_m, blocks_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    group = pid // (GROUP_M * blocks_n)
    first_m = group * GROUP_M
    size_m = min(blocks_m - first_m, GROUP_M)
    block_m = first_m + (pid % (GROUP_M * blocks_n)) % size_m
    block_n = (pid % (GROUP_M * blocks_n)) // size_m
    offsets_m = (block_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offsets_n = (block_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offsets_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offsets_m[:, None] * stride_am + offsets_k[None, :]
    b_ptrs = b_ptr + offsets_k[:, None] * stride_bk + offsets_n[None, :]
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=offsets_k[None, :] < K - k * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=offsets_k[:, None] < K - k * BLOCK_K, other=0.0)
        accumulator = tl.dot(a, b, accumulator)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * stride_bk
    rows = block_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = block_n * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + stride_cm * rows[:, None] + columns[None, :], accumulator.to(tl.float16), mask=mask)


def half_pointers(*names):
    return dict.fromkeys(names, "*fp16")


def float_pointers(*names):
    return dict.fromkeys(names, "*fp32")


def integers(*names):
    return dict.fromkeys(names, "i32")


MATMUL_SIGNATURE = {
    **half_pointers("a_ptr", "b_ptr", "c_ptr"),
    **integers("M", "N", "K", "stride_am", "stride_bk", "stride_cm"),
}

# name -> (function, signature, constants, options)
KERNELS = {
    "vector_add": (vector_add, {**float_pointers("x_ptr", "y_ptr", "out_ptr"), **integers("n")}, {"BLOCK": 1024}, {}),
    "softmax": (
        softmax,
        {**float_pointers("out_ptr", "in_ptr"), **integers("in_stride", "out_stride", "rows", "columns")},
        {"BLOCK": 1024},
        {"num_warps": 8, "num_stages": 2},
    ),
    "layer_norm": (
        layer_norm,
        {
            **half_pointers("x_ptr", "y_ptr", "weight_ptr", "bias_ptr"),
            **float_pointers("mean_ptr", "rstd_ptr"),
            **integers("stride", "n"),
            "eps": "fp32",
        },
        {"BLOCK": 1024},
        {"num_warps": 8},
    ),
    "matmul": (
        matmul,
        MATMUL_SIGNATURE,
        {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 32, "GROUP_M": 8},
        {"num_warps": 4, "num_stages": 3},
    ),
    "matmul_small": (
        matmul,
        MATMUL_SIGNATURE,
        {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32, "GROUP_M": 4},
        {"num_warps": 4, "num_stages": 3},
    ),
}


def compile_ptx(name, arch):
    function, signature, constants, options = KERNELS[name]
    full = {**signature, **dict.fromkeys(constants, "constexpr")}
    # What Triton's own launcher says about arguments divisible by 16; without it no cp.async is wide enough to be used.
    divisible = [argument for argument in signature if argument.endswith(("_ptr", "M", "N", "K")) or "stride" in argument]
    positions = list(full)
    attributes = {(positions.index(argument),): [["tt.divisibility", 16]] for argument in divisible}
    source = ASTSource(fn=function, signature=full, constexprs={(positions.index(k),): v for k, v in constants.items()}, attrs=attributes)
    compiled = triton.compile(source, target=GPUTarget("cuda", int(arch.removeprefix("sm_").rstrip("af")), 32), options=options)
    metadata = compiled.metadata
    notes = f"// consan-corpus: num_warps={metadata.num_warps} shared={metadata.shared} constants={constants}\n"
    return notes + compiled.asm["ptx"]


if __name__ == "__main__":
    sys.stdout.write(compile_ptx(sys.argv[1], sys.argv[2]))
