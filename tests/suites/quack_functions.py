"""A public function of quack beside torch's: consan run --device cpu quack_functions.py NAME [ROWS COLUMNS]"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import torch
from torch.nn import functional

NAME, (M, N) = sys.argv[1], map(int, sys.argv[2:4] if len(sys.argv) > 3 else (8, 256))
torch.manual_seed(1)


def tensor(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Random values on the device."""
    return torch.randn(*shape, device="cuda", dtype=dtype)


def half(*shape: int) -> torch.Tensor:
    """Random values that sum up to about one."""
    return (tensor(*shape) * shape[-1] ** -0.5).to(torch.bfloat16)


def softmax() -> Any:
    from quack import softmax

    return softmax, functional.softmax, [tensor(M, N)], {"dim": -1}


def rmsnorm() -> Any:
    from quack import rmsnorm

    return rmsnorm, lambda x, weight: functional.rms_norm(x, (N,), weight, 1e-6), [tensor(M, N), tensor(N)], {}


def layernorm() -> Any:
    from quack.rmsnorm import layernorm_fwd

    def theirs(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:  # on a GPU torch's takes no two types
        return functional.layer_norm(x.float(), (N,), weight, None, 1e-6).bfloat16()

    return layernorm_fwd, theirs, [tensor(M, N).bfloat16(), tensor(N)], {}


def cross_entropy() -> Any:
    from quack import cross_entropy

    target = torch.randint(0, N, (M,), device="cuda")
    return lambda x: cross_entropy(x, target), lambda x: functional.cross_entropy(x, target), [tensor(M, N)], {}


def topk() -> Any:
    from quack.topk import topk

    return lambda x: topk(x, 8)[0], lambda x: torch.topk(x, 8).values, [tensor(M, N)], {}


def gemm() -> Any:
    from quack.gemm_interface import gemm

    return lambda a, b: gemm(a, b, tuned=False), lambda a, b: (a.float() @ b.float()).bfloat16(), [half(M, N), half(N, 128)], {}


def gemm_act() -> Any:
    from quack.gemm_interface import gemm_act

    def ours(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return gemm_act(a, b, activation="relu", tuned=False)[1]

    return ours, lambda a, b: (a.float() @ b.float()).relu().bfloat16(), [half(M, N), half(N, 128)], {}


def linear() -> Any:
    from quack.linear import linear_func

    def theirs(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return functional.linear(x.float(), weight.float()).bfloat16()

    return lambda x, weight: linear_func(x, weight, tuned=False), theirs, [half(M, N), half(128, N)], {}


WITH_GRADIENT: Final = ("softmax", "rmsnorm", "cross_entropy", "topk", "linear")
CASES: Final[dict[str, Callable[[], Any]]] = {
    each.__name__: each for each in (softmax, rmsnorm, layernorm, cross_entropy, topk, gemm, gemm_act, linear)
}
ours, theirs, arguments, named = CASES[NAME]()
if NAME in WITH_GRADIENT:
    arguments = [each.requires_grad_() for each in arguments]
found, expected = ours(*arguments), theirs(*arguments, **named)
print("largest error", float((found.float() - expected.float()).abs().max()))
if NAME in WITH_GRADIENT:
    upstream = torch.randn_like(found)
    gradients = zip(*(torch.autograd.grad(each, arguments, upstream) for each in (found, expected)), strict=True)
    print("of gradients", max(float((one.float() - two.float()).abs().max()) for one, two in gradients))
