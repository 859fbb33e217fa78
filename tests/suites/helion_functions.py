"""Helion's own examples by their functions, small, held against torch; the sources are a checkout's `examples`.

consan run --device cpu tests/suites/helion_functions.py CHECKOUT softmax
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch.nn import functional


@dataclass(frozen=True)
class Example:
    """A function of a file, its arguments, and what torch says."""

    file: str
    function: str
    given: Callable[[], tuple[Any, ...]]
    expected: Callable[..., Any]


def values(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, device="cuda").to(dtype)


def numbers(below: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, below, shape, device="cuda")


def normed(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return functional.layer_norm(x, x.shape[-1:], weight, bias)


def rooted(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return functional.rms_norm(x, x.shape[-1:], weight, 1e-5)


def summed(x: torch.Tensor) -> torch.Tensor:
    return x.sum(-1)


def gated_gelu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return functional.gelu(a, approximate="tanh") * b


def normed_weights_first(weight: torch.Tensor, bias: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return normed(x, weight, bias)


HALF = torch.float16
EXAMPLES = {
    "add": Example("add", "add", lambda: (values(32, 40), values(32, 40)), torch.add),
    "exp": Example("exp", "exp_fwd", lambda: (values(200),), torch.exp),
    "sum": Example("sum", "sum_kernel", lambda: (values(16, 100),), summed),
    "longsum": Example("long_sum", "longsum", lambda: (values(4, 3000),), summed),
    "longsum_loop": Example("long_sum", "longsum_w_red_loop", lambda: (values(4, 3000),), summed),
    "longsum_manual": Example("long_sum", "longsum_manual", lambda: (values(4, 3000),), summed),
    "softmax": Example("softmax", "softmax", lambda: (values(16, 100),), lambda x: x.softmax(1)),
    "softmax_decomposed": Example("softmax", "softmax_decomposed", lambda: (values(16, 100),), lambda x: x.softmax(1)),
    "softmax_two_pass": Example("softmax", "softmax_two_pass", lambda: (values(16, 100),), lambda x: x.softmax(1)),
    "batch_softmax": Example("batch_softmax", "batch_softmax", lambda: (values(2, 8, 64),), lambda x: x.softmax(-1)),
    "welford": Example("welford", "welford", lambda: (values(64), values(64), values(16, 64)), normed_weights_first),
    "layer_norm": Example("layer_norm", "layer_norm", lambda: (values(16, 64), [64], values(64), values(64)), functional.layer_norm),
    "rms_norm": Example("rms_norm", "rms_norm", lambda: (values(16, 64), values(64)), rooted),
    "cross_entropy": Example("cross_entropy", "cross_entropy", lambda: (values(16, 50), numbers(50, 16)), functional.cross_entropy),
    "embedding": Example("embedding", "embedding", lambda: (numbers(16, 8, 4), values(16, 32)), functional.embedding),
    "matmul": Example("matmul", "matmul", lambda: (values(64, 64, dtype=HALF), values(64, 64, dtype=HALF)), torch.matmul),
    "matmul_split_k": Example("matmul_split_k", "matmul_split_k", lambda: (values(32, 128), values(128, 32)), torch.matmul),
    "matmul_layernorm": Example(
        "matmul_layernorm",
        "matmul_layernorm",
        lambda: (values(32, 64), values(64, 64), values(64), values(64)),
        lambda x, y, weight, bias: normed(x @ y, weight, bias),
    ),
    "bmm": Example("bmm", "bmm", lambda: (values(2, 32, 32, dtype=HALF), values(2, 32, 32, dtype=HALF)), torch.bmm),
    "broadcast_matmul": Example("broadcast_matmul", "broadcast_matmul", lambda: (values(2, 16, 32), values(32, 16)), torch.matmul),
    "geglu": Example("geglu", "geglu", lambda: (values(8, 64), values(8, 64)), gated_gelu),
    "swiglu": Example("swiglu", "swiglu_fwd", lambda: (values(8, 64), values(8, 64)), lambda a, b: functional.silu(a) * b),
    "concatenate": Example("concatenate", "concat2d_dim1", lambda: (values(16, 20), values(16, 30)), lambda x, y: torch.cat((x, y), 1)),
    "attention": Example(
        "attention",
        "attention",
        lambda: tuple(values(1, 1, 128, 64, dtype=HALF) for _ in range(3)),
        functional.scaled_dot_product_attention,
    ),
}


def main(checkout: str, name: str) -> None:
    sys.path.insert(0, checkout)
    torch.manual_seed(1)
    example = EXAMPLES[name]
    function = getattr(import_module(f"examples.{example.file}"), example.function)
    given = example.given()
    found = function(*given)
    first = found[0] if isinstance(found, tuple) else found
    expected = example.expected(*given).to(first.dtype)
    print(f"{name}: largest error {float((first - expected).abs().max()):.1e}")
    torch.testing.assert_close(first, expected, rtol=2e-2, atol=2e-2)


if __name__ == "__main__":
    main(*sys.argv[1:])
