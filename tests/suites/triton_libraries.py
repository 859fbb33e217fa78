"""Triton kernels of liger-kernel and fla-core, forward and backward, and of FlagGems, on the virtual machine: a line for each operation.

    .venv-triton/bin/python tests/suites/triton_libraries.py [NAME ...]     needs torch (CPU), liger-kernel, fla-core, einops
    CONSAN_PROVE=10 .venv-triton/bin/python tests/suites/triton_libraries.py          the same, and which kernels are proven in 10 s (z3)
    python3 tests/suites/triton_libraries.py --gpu [NAME ...]                         on a GPU, under consan.check; also kernels by engine
    PYTHONPATH=FlagGems/src GEMS_VENDOR=nvidia .venv-triton/bin/python tests/suites/triton_libraries.py --flag-gems [NAME ...]

The inputs are small, so that all programs of a launch are checked together. `torch.cuda` tells of a device of four multiprocessors.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest import mock

import consan.triton

ARCH = "sm_90"
PROPERTIES = {
    "get_device_properties": lambda *_: SimpleNamespace(multi_processor_count=4, name="virtual", major=9, minor=0, total_memory=1 << 34),
    "get_device_capability": lambda *_: (9, 0),
    "device": lambda *_: contextlib.nullcontext(),
    "current_device": lambda: 0,
    "device_count": lambda: 1,
    "is_available": lambda: True,
}


def _rand(*shape: int) -> Any:
    import torch

    return torch.rand(*shape).requires_grad_()


def _back(found: Any) -> None:
    """Sum up the results and go back."""
    results = found if isinstance(found, tuple) else (found,)
    wanted = [each.sum() for each in results if each is not None and each.requires_grad]
    if wanted:
        sum(wanted).backward()


def liger() -> dict[str, Callable[[], Any]]:
    """The operations of liger-kernel."""
    import torch
    from liger_kernel import ops

    def target(count: int, classes: int) -> Any:
        return torch.randint(0, classes, (count,))

    def log_softmax(*shape: int) -> Any:
        return torch.rand(*shape).log_softmax(-1).requires_grad_()

    halves = torch.rand(1, 16, 32), torch.rand(1, 16, 32)
    return {
        "rms_norm": lambda: ops.LigerRMSNormFunction.apply(_rand(12, 64), _rand(64), 1e-6),
        "layer_norm": lambda: ops.LigerLayerNormFunction.apply(_rand(12, 64), _rand(64), _rand(64), 1e-6),
        "group_norm": lambda: ops.LigerGroupNormFunction.apply(_rand(2, 8, 16), _rand(8), _rand(8), 8, 4, 1e-6),
        "fused_add_rms_norm": lambda: ops.LigerFusedAddRMSNormFunction.apply(_rand(12, 64), _rand(12, 64), _rand(64), 1e-6),
        "poly_norm": lambda: ops.LigerPolyNormFunction.apply(_rand(12, 64), _rand(3), _rand(1)[0], 1e-6),
        "dyt": lambda: ops.LigerDyTFunction.apply(_rand(12, 64), _rand(1), _rand(64), _rand(64)),
        "softmax": lambda: ops.LigerSoftmaxFunction.apply(_rand(12, 64)),
        "sparsemax": lambda: ops.LigerSparsemaxFunction.apply(_rand(12, 64), -1),
        "swiglu": lambda: ops.LigerSiLUMulFunction.apply(_rand(12, 64), _rand(12, 64)),
        "geglu": lambda: ops.LigerGELUMulFunction.apply(_rand(12, 64), _rand(12, 64)),
        "relu_squared": lambda: ops.LigerReLUSquaredFunction.apply(_rand(12, 64)),
        "cross_entropy": lambda: ops.LigerCrossEntropyFunction.apply(_rand(12, 100), target(12, 100), None)[0],
        "fused_linear_cross_entropy": lambda: ops.LigerFusedLinearCrossEntropyFunction.apply(
            _rand(12, 32), _rand(100, 32), target(12, 100)
        )[0],
        "kl_div": lambda: ops.LigerKLDivLossFunction.apply(log_softmax(12, 64), torch.rand(12, 64).softmax(-1)),
        "jsd": lambda: ops.LigerJSDFunction.apply(log_softmax(12, 64), log_softmax(12, 64).detach()),
        "fused_linear_jsd": lambda: ops.LigerFusedLinearJSDFunction.apply(_rand(8, 32), _rand(64, 32), _rand(8, 32), _rand(64, 32)),
        "tvd": lambda: ops.LigerTVDLossFunction.apply(torch.rand(12, 64).softmax(-1).requires_grad_(), torch.rand(12, 64).softmax(-1)),
        "rope": lambda: ops.LigerRopeFunction.apply(_rand(1, 4, 16, 32), _rand(1, 2, 16, 32), *halves),
        "multi_token_attention": lambda: ops.LigerMultiTokenAttentionFunction.apply(_rand(1, 2, 16, 16), _rand(2, 2, 3, 3), _rand(2), 1, 1),
    }


def fla() -> dict[str, Callable[[], Any]]:
    """Operations of fla-core: scans over chunks, and recurrences."""
    import torch
    from fla import ops

    def qkv(dtype: Any = torch.float32) -> list[Any]:
        return [torch.rand(1, 64, 2, 16, dtype=dtype).requires_grad_() for _ in range(3)]

    def half(*shape: int) -> Any:
        return torch.rand(*shape, dtype=torch.bfloat16).requires_grad_()

    def gate(*shape: int) -> Any:
        return torch.rand(*shape).sigmoid().log().requires_grad_()

    return {
        "linear_attn": lambda: ops.linear_attn.chunk_linear_attn(*qkv())[0],
        "retention": lambda: ops.retention.chunk_retention(*qkv())[0],
        "parallel_retention": lambda: ops.retention.parallel_retention(*qkv())[0],
        "simple_gla": lambda: ops.simple_gla.chunk_simple_gla(*qkv(), g=gate(1, 64, 2))[0],
        "gla": lambda: ops.gla.chunk_gla(*qkv(), g=gate(1, 64, 2, 16))[0],
        "fused_recurrent_gla": lambda: ops.gla.fused_recurrent_gla(*qkv(), gk=gate(1, 64, 2, 16))[0],
        "hgrn": lambda: ops.hgrn.chunk_hgrn(_rand(1, 64, 32), gate(1, 64, 32))[0],
        "delta_rule": lambda: ops.delta_rule.chunk_delta_rule(*qkv(torch.bfloat16), half(1, 64, 2))[0],
        "gated_delta_rule": lambda: ops.gated_delta_rule.chunk_gated_delta_rule(*qkv(), gate(1, 64, 2), _rand(1, 64, 2))[0],
        "attention": lambda: ops.attn.parallel_attn(*qkv()),
        "rwkv6": lambda: ops.rwkv6.chunk_rwkv6(*qkv(), gate(1, 64, 2, 16), _rand(2, 16))[0],
        "based": lambda: ops.based.parallel_based(*qkv()),
    }


def flag_gems() -> dict[str, Callable[[], Any]]:
    """Operations of FlagGems that are no products: products choose among many forms, and all would be compiled."""
    import torch

    with consan.triton.cpu(arch=ARCH):  # it asks for the driver
        import flag_gems as gems
    rand = torch.rand
    return {
        "softmax": lambda: gems.softmax(rand(12, 100), -1),
        "log_softmax": lambda: gems.log_softmax(rand(12, 100), -1),
        "layer_norm": lambda: gems.layer_norm(rand(12, 64), (64,), rand(64), rand(64)),
        "rms_norm": lambda: gems.rms_norm(rand(12, 64), (64,), rand(64)),
        "group_norm": lambda: gems.group_norm(rand(2, 8, 16), rand(8), rand(8), 2, 8, 16, 4, 1e-5),
        "sum": lambda: gems.sum(rand(3000)),
        "sum_dim": lambda: gems.sum_dim(rand(12, 100), [1]),
        "mean": lambda: gems.mean(rand(3000)),
        "max": lambda: gems.max(rand(3000)),
        "argmax": lambda: gems.argmax(rand(12, 100), 1),
        "cumsum": lambda: gems.cumsum(rand(4, 100), 1),
        "prod": lambda: gems.prod(rand(3000)),
        "any": lambda: gems.any(rand(3000) > 0.5),
        "mv": lambda: gems.mv(rand(64, 64), rand(64)),
    }


def run(name: str, operation: Callable[[], Any], *, gpu: bool) -> None:
    """One operation and its derivative: what consan says of their kernels."""
    start, ended = time.monotonic(), "not begun"
    within = float(os.environ.get("CONSAN_PROVE", "0"))  # of an operation
    with consan.check() if gpu else consan.triton.cpu(arch=ARCH, prove=within) as report:
        try:
            found = operation()
            ended = "forward only"
            _back(found)
            ended = "forward and backward"
        except Exception as error:  # the next one may run
            ended += f": {type(error).__name__} {' '.join(str(error).split())[:160]}"
    kinds = sorted({f"{each.kind} {each.situation} {each.severity}" for each in report.findings})
    seen = f"{len(report.kernels)} kernels, {sum(kernel.launches for kernel in report.kernels)} launches"
    seen += f", {sum(kernel.proof is not None for kernel in report.kernels)} proven" if within else ""
    seen += "".join(f", {count} {engine}" for engine, count in Counter(each.engine for each in report.kernels).items()) if gpu else ""
    checked = "global-memory" in report.checked
    print(
        f"| {name} | {ended} | {seen} | {report.verdict}{'' if checked else ', global memory not checked'} | {', '.join(kinds)} |",
        flush=True,
    )
    print(f"    {time.monotonic() - start:.0f} s {'; '.join(report.incomplete)[:300]}", file=sys.stderr, flush=True)
    print(*(f"    {note[:200]}" for note in report.notes if "proven" in note or "proof" in note), sep="\n", file=sys.stderr, flush=True)
    if any(each.severity != "note" for each in report.findings):
        print(report, file=sys.stderr, flush=True)


def main() -> None:
    """Run those that the command line names, or all."""
    names, gpu = [each for each in sys.argv[1:] if not each.startswith("--")], "--gpu" in sys.argv
    with contextlib.ExitStack() as stack:
        if gpu:
            stack.enter_context(importlib.import_module("torch").device("cuda"))
        for name, value in () if gpu else PROPERTIES.items():
            stack.enter_context(mock.patch(f"torch.cuda.{name}", value))
        for library in (flag_gems,) if "--flag-gems" in sys.argv else (liger, fla):
            for name, operation in library().items():
                if not names or name in names:
                    run(f"{library.__name__} {name}", operation, gpu=gpu)


if __name__ == "__main__":
    main()
