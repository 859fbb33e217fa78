"""tilelang's own examples, held against their own references; the sources are a checkout's `examples`. A benchmark in them makes one call.

consan run --device cpu tests/suites/tilelang_functions.py CHECKOUT gemm_persistent mha_bwd_bshd
python tests/suites/tilelang_functions.py CHECKOUT --as-they-are splitk     (on a GPU: with the sizes of the example's own `main`)
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import tilelang.profiler
import torch

HEADS = {"BATCH": 1, "H": 2, "N_CTX": 128, "D_HEAD_QK": 64, "D_HEAD_V": 64, "groups": 2}
LATENT = {"batch": 1, "heads": 64, "kv_heads": 1, "kv_ctx": 128, "dim": 128, "pe_dim": 64}
MATRIX = {"M = 1024": "M = 128", "N = 1024": "N = 128", "K = 1024": "K = 64", "split_k = 4": "split_k = 2"}
WIDER = {"rtol=1e-4, atol=1e-4": "rtol=1e-2, atol=1e-2"}  # their references compute in float16
STREAM = {
    "m = 256": "m = 64", "n = 1024": "n = 256", "k = 512": "k = 128", "total_sm = 108": "total_sm = 6",
    "@tilelang.jit": '@tilelang.jit(pass_configs={"tl.disable_warp_specialized": True})',
}  # fmt: skip


@dataclass(frozen=True)
class Example:
    """A file of `examples`, small arguments of its `main`, and what becomes of lines that hold sizes."""

    file: str
    small: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, str] = field(default_factory=dict)
    words: str = ""  # of the command line, for a file without such a function


EXAMPLES = {
    "gemm": Example("gemm/example_gemm", lines={"1024": "128"}),
    "gemm_intrinsics": Example("gemm/example_gemm_intrinsics", {"M": 128, "N": 128, "K": 64}),
    "gemm_persistent": Example("gemm/example_gemm_persistent", {"M": 256, "N": 512, "K": 128}),
    "splitk": Example("gemm_splitk/example_tilelang_gemm_splitk", lines=MATRIX),
    "splitk_vector": Example("gemm_splitk/example_tilelang_gemm_splitk_vectorize_atomicadd", lines=MATRIX),
    "streamk": Example("gemm_streamk/example_tilelang_gemm_streamk", lines=STREAM),
    "mha_fwd_bhsd": Example("flash_attention/example_mha_fwd_bhsd", {"heads": 1, "seq_q": 128, "seq_kv": 128, "is_causal": True}),
    "mha_fwd_bshd": Example("flash_attention/example_mha_fwd_bshd", {"batch": 1, "heads": 1, "seq_len": 256, "dim": 64}),
    "mha_fwd_varlen": Example("flash_attention/example_mha_fwd_varlen", {"batch": 2, "heads": 1, "seq_len": 128, "dim": 64}),
    "mha_bwd_bhsd": Example("flash_attention/example_mha_bwd_bhsd", {"BATCH": 1, "H": 1, "N_CTX": 128, "D_HEAD": 64, "causal": True}),
    "mha_bwd_bshd": Example("flash_attention/example_mha_bwd_bshd", {"BATCH": 1, "H": 1, "N_CTX": 128, "D_HEAD": 64}),
    "gqa_fwd_bshd": Example("flash_attention/example_gqa_fwd_bshd", {"batch": 1, "heads": 2, "seq_len": 128, "dim": 64, "groups": 2}),
    "gqa_fwd_varlen": Example(
        "flash_attention/example_gqa_fwd_varlen", {"batch": 2, "heads": 2, "q_seqlen": 128, "k_seqlen": 128, "dim": 64, "groups": 2}
    ),
    "gqa_bwd": Example("flash_attention/example_gqa_bwd", HEADS),
    "gqa_bwd_split": Example("flash_attention/example_gqa_bwd", {**HEADS, "use_atomic": False}),
    "gqa_bwd_tma": Example("flash_attention/example_gqa_bwd_tma_reduce", HEADS),
    "gqa_bwd_varlen": Example("flash_attention/example_gqa_bwd_tma_reduce_varlen", HEADS),
    "mla": Example("deepseek_mla/example_mla_decode", LATENT, WIDER),
    "mla_ws": Example("deepseek_mla/example_mla_decode_ws", {**LATENT, "dim": 512}, WIDER),
    "mla_persistent": Example(
        "deepseek_mla/example_mla_decode_persistent", words="--batch 1 --heads 64 --kv_ctx 256 --dim 128 --pe_dim 64"
    ),
    "fp4": Example("dequantize_gemm/example_dequant_gemm_fp4_hopper", {"m": 128, "n": 128, "k": 128}),
    "bf16_fp4": Example("dequantize_gemm/example_dequant_gemm_bf16_fp4_hopper"),
    "bf16_mxfp4": Example("dequantize_gemm/example_dequant_gemm_bf16_mxfp4_hopper"),
    "w4a8": Example("dequantize_gemm/example_dequant_gemm_w4a8", {"m": 32, "n": 64, "k": 128}),
    "gemv_int4": Example("dequantize_gemm/example_dequant_gemv_fp16xint4"),
}


def once(call: Callable[[], Any], *_: Any, **__: Any) -> float:
    """A benchmark of one call; in milliseconds."""
    began = time.monotonic()
    call()
    torch.cuda.synchronize()
    taken = (time.monotonic() - began) * 1000
    print(f"  one more call: {taken:.1f} ms", flush=True)
    return taken


def once_of_kernel(profiler: Any, call: Callable[..., Any] | None = None, *_: Any, **__: Any) -> float:
    """`Profiler.do_bench`."""
    inputs = profiler._get_inputs()
    return once(lambda: (call or profiler.adapter)(*inputs))


def run(checkout: Path, example: Example, small: bool) -> None:
    """Run an example's `main`. Lines are replaced in a copy, where tilelang reads the text of its functions."""
    source = checkout / f"{example.file}.py"
    folder = source.parent
    sys.path.insert(0, str(folder))
    if small and example.lines:
        text = source.read_text()
        for old, new in example.lines.items():
            if old not in text:
                raise SystemExit(f"{source} has no line '{old}'")
            text = text.replace(old, new)
        folder = Path(tempfile.mkdtemp())
        (folder / source.name).write_text(text)
        sys.path.insert(0, str(folder))
    sys.argv = [source.name, *(example.words.split() if small else ())]
    import_module(source.stem).main(**(example.small if small else {}))


def main(checkout: str, *names: str) -> None:
    tilelang.profiler.do_bench = once
    tilelang.profiler.Profiler.do_bench = once_of_kernel
    small = names[:1] != ("--as-they-are",)
    for name in names if small else names[1:]:
        torch.manual_seed(0)
        began = time.monotonic()
        run(Path(checkout), EXAMPLES[name], small)
        print(f"{name}: right, {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
