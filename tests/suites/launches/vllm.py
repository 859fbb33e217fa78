"""Calls the functions of one source of vLLM's csrc, which lies next to this module, with small tensors. public_audit.py puts it there."""

from pathlib import Path

import torch
from torch.utils.cpp_extension import load

SOURCE = Path(__file__).with_suffix(".cu")
ROOT = next(folder for folder in SOURCE.parents if folder.name == "csrc")
TOKENS, HEADS, SIZE, BLOCK, BLOCKS = 4, 2, 64, 16, 4
HIDDEN = HEADS * SIZE
GATED, PLAIN = ("silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul"), ("gelu_new", "gelu_fast", "gelu_quick")


def some(*shape, dtype=torch.float16):
    """A tensor of random values."""
    return torch.randn(*shape, device="cuda").to(dtype)


def none(*shape, dtype=torch.float16):
    """A tensor that a kernel is to write."""
    return torch.empty(*shape, dtype=dtype, device="cuda")


def numbers(below, *shape, dtype=torch.int32):
    """A tensor of random integers."""
    return torch.randint(0, below, shape, dtype=dtype, device="cuda")


def packed(*shape):
    """Weights of four bits."""
    return numbers(1 << 30, *shape)


def caches():
    """Keys and values, as vLLM lays them out."""
    return some(BLOCKS, HEADS, SIZE // 8, BLOCK, 8), some(BLOCKS, HEADS, SIZE, BLOCK)


def activation_kernels(of):
    for name in GATED:
        of[name](none(TOKENS, 100), some(TOKENS, 200))
    for name in PLAIN:
        of[name](none(TOKENS, 100), some(TOKENS, 100))


def layernorm_kernels(of):
    for dtype in (torch.float16, torch.float32):
        of["rms_norm"](none(TOKENS, 200, dtype=dtype), some(TOKENS, 200, dtype=dtype), some(200, dtype=dtype), 1e-5)
        for width in (200, 203):
            of["fused_add_rms_norm"](some(TOKENS, width, dtype=dtype), some(TOKENS, width, dtype=dtype), some(width, dtype=dtype), 1e-5)


def pos_encoding_kernels(of):
    for neox in (True, False):
        given = some(TOKENS, HIDDEN), some(TOKENS, HIDDEN), SIZE, some(32, SIZE), neox
        of["rotary_embedding"](numbers(32, TOKENS, dtype=torch.int64), *given)
        of["batched_rotary_embedding"](numbers(16, TOKENS, dtype=torch.int64), *given, SIZE, numbers(16, TOKENS, dtype=torch.int64))


def cache_kernels(of):
    keys, values = caches()
    slots = torch.tensor([5, 17, 40, -1], dtype=torch.int64, device="cuda")
    key, value = some(TOKENS, HEADS, SIZE), some(TOKENS, HEADS, SIZE)
    of["reshape_and_cache"](key, value, keys, values, slots, "auto", 1.0)
    of["reshape_and_cache_flash"](key, value, some(BLOCKS, BLOCK, HEADS, SIZE), some(BLOCKS, BLOCK, HEADS, SIZE), slots, "auto")
    of["copy_blocks"]([keys, keys.clone()], [values, values.clone()], torch.tensor([[0, 2], [1, 3]], dtype=torch.int64, device="cuda"))
    of["convert_fp8"](none(BLOCKS, 64, dtype=torch.uint8), some(BLOCKS, 64), 1.0, "fp8")


def attention_kernels(of):
    keys, values = caches()
    tables = torch.tensor([[0, 1, 2], [3, 0, 1]], dtype=torch.int32, device="cuda")
    lengths = torch.tensor([40, 9], dtype=torch.int32, device="cuda")
    out, query = none(2, HEADS, SIZE), some(2, HEADS, SIZE)
    given = query, keys, values, HEADS, 0.125, tables, lengths, BLOCK, 40, None, "auto", 1.0, 0, 0, 0, 64, 0
    of["paged_attention_v1"](out, *given)
    parts = none(2, HEADS, 1, dtype=torch.float32), none(2, HEADS, 1, dtype=torch.float32), none(2, HEADS, 1, SIZE)
    of["paged_attention_v2"](out, *parts, *given)


def moe_align_block_size_kernels(of):
    experts, block = 8, 4
    most = TOKENS * 2 + experts * (block - 1)
    found = none(most, dtype=torch.int32), none(most // block + 1, dtype=torch.int32), none(1, dtype=torch.int32)
    of["moe_align_block_size"](numbers(experts, TOKENS, 2), experts, block, *found)


def topk_softmax_kernels(of):
    for experts in (8, 60):
        found = none(TOKENS, 2, dtype=torch.float32), none(TOKENS, 2, dtype=torch.int32), none(TOKENS, 2, dtype=torch.int32)
        of["topk_softmax"](*found, some(TOKENS, experts, dtype=torch.float32))


def int8_quant_kernels(of):
    given = none(TOKENS, 200, dtype=torch.int8), some(TOKENS, 200)
    of["static_scaled_int8_quant"](*given, torch.ones(1, device="cuda"))
    of["dynamic_scaled_int8_quant"](*given, none(TOKENS, 1, dtype=torch.float32))


def common(of):
    given = none(TOKENS, 200, dtype=torch.float8_e4m3fn), some(TOKENS, 200)
    of["static_scaled_fp8_quant"](*given, torch.ones(1, device="cuda"))
    of["dynamic_scaled_fp8_quant"](*given, torch.zeros(1, device="cuda"))


def awq(of):
    for out in (64, 128):
        weights = packed(64, out // 8), some(2, out), packed(2, out // 8)
        of["awq_gemm"](some(2, 64), *weights, 2)
        of["awq_dequantize"](*weights, 0, 0, 0)


def aqlm(of):
    books = (
        (numbers(1 << 15, 16, 8, 1, dtype=torch.int16), some(1, 1 << 16, 1, 8)),
        (numbers(127, 16, 8, 2, dtype=torch.int8), some(2, 1 << 8, 1, 8)),
    )
    for codes, book in books:
        of["aqlm_gemm"](some(2, 64), codes, book, some(16, 1, 1, 1), torch.tensor([16]), None)
        of["aqlm_dequant"](codes, book, torch.tensor([16]))


def q_gemm(of):
    for bits in (2, 3, 4, 8):
        rows, width = 128 * bits // 32, 128
        weights, order = packed(rows, width), torch.randperm(128, device="cuda").to(torch.int32)
        of["gptq_shuffle"](weights, order, bits)
        zeros, scales, groups = packed(1, width * bits // 32), some(1, width), torch.zeros(128, dtype=torch.int32, device="cuda")
        for exllama in (True, False):
            of["gptq_gemm"](some(2, 128), weights, zeros, scales, groups, exllama, bits)


def gptq_marlin_repack(of):
    for bits in (4, 8):
        for order in (0, 64):
            of["gptq_marlin_repack"](packed(64 * bits // 32, 64), torch.randperm(order, device="cuda").to(torch.int32), 64, 64, bits)


def quant_cuda_kernel(of):
    of["squeezellm_gemm"](some(2, 128), packed(16, 128), torch.zeros(2, 128, dtype=torch.float16, device="cuda"), some(128, 16))


def gptq_marlin(of):
    workspace, nothing = torch.zeros(64, dtype=torch.int32, device="cuda"), none(0, dtype=torch.int32)
    weights = packed(128 // 16, 128 * 16 // 8)
    of["gptq_marlin_gemm"](some(16, 128), weights, some(1, 128), nothing, nothing, workspace, 4, 16, 128, 128, True)


def fp8_marlin(of):
    workspace = torch.zeros(64, dtype=torch.int32, device="cuda")
    of["fp8_marlin_gemm"](some(16, 128), packed(128 // 16, 128 * 16 // 4), some(1, 128), workspace, 8, 16, 128, 128)


def marlin_cuda_kernel(of):
    workspace = torch.zeros(64, dtype=torch.int32, device="cuda")
    of["marlin_gemm"](some(16, 128), packed(128 // 16, 256 * 16 // 8), some(1, 256), workspace, 16, 256, 128)


CALLS = {
    "awq/gemm_kernels": (awq, ["awq_gemm", "awq_dequantize"]),
    "aqlm/gemm_kernels": (aqlm, ["aqlm_gemm", "aqlm_dequant"]),
    "csrc/activation_kernels": (activation_kernels, [*GATED, *PLAIN]),
    "csrc/layernorm_kernels": (layernorm_kernels, ["rms_norm", "fused_add_rms_norm"]),
    "csrc/pos_encoding_kernels": (pos_encoding_kernels, ["rotary_embedding", "batched_rotary_embedding"]),
    "csrc/cache_kernels": (cache_kernels, ["reshape_and_cache", "reshape_and_cache_flash", "copy_blocks", "convert_fp8"]),
    "attention/attention_kernels": (attention_kernels, ["paged_attention_v1", "paged_attention_v2"]),
    "csrc/moe_align_block_size_kernels": (moe_align_block_size_kernels, ["moe_align_block_size"]),
    "moe/topk_softmax_kernels": (topk_softmax_kernels, ["topk_softmax"]),
    "compressed_tensors/int8_quant_kernels": (int8_quant_kernels, ["static_scaled_int8_quant", "dynamic_scaled_int8_quant"]),
    "fp8/common": (common, ["static_scaled_fp8_quant", "dynamic_scaled_fp8_quant"]),
    "fp8/fp8_marlin": (fp8_marlin, ["fp8_marlin_gemm"]),
    "gptq/q_gemm": (q_gemm, ["gptq_gemm", "gptq_shuffle"]),
    "gptq_marlin/gptq_marlin": (gptq_marlin, ["gptq_marlin_gemm"]),
    "gptq_marlin/gptq_marlin_repack": (gptq_marlin_repack, ["gptq_marlin_repack"]),
    "dense/marlin_cuda_kernel": (marlin_cuda_kernel, ["marlin_gemm"]),
    "squeezellm/quant_cuda_kernel": (quant_cuda_kernel, ["squeezellm_gemm"]),
}
CALL, NAMES = CALLS[f"{SOURCE.parent.name}/{SOURCE.stem}"]
binding = Path("binding.cpp").resolve()
binding.write_text("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {" + "".join(f'm.def("{name}", &{name}); ' for name in NAMES) + "}\n")
torch.manual_seed(0)
CALL(vars(load("vllm", [SOURCE, binding], extra_include_paths=[ROOT], extra_cflags=["-DENABLE_FP8"])))
