"""Helion's own examples by their functions, small, held against torch; the sources are a checkout's `examples`.

consan run --device cpu tests/suites/helion_functions.py CHECKOUT softmax jagged_sum
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch.nn import functional


@dataclass(frozen=True)
class Example:
    """A function of a file, its arguments, and what torch says: a function, or the name of one of the file."""

    file: str
    function: str
    given: Callable[[], tuple[Any, ...]]
    expected: Callable[..., Any] | str


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


def jagged(*columns: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of several lengths behind each other, and where each begins."""
    offsets = torch.tensor([0, 3, 4, 9, 11], device="cuda")
    return values(11, *columns), offsets


def gradient(function: Callable[..., torch.Tensor], out: torch.Tensor, *given: torch.Tensor) -> torch.Tensor:
    """The gradient of a function by its first argument. `out`: that of its result."""
    first = given[0].detach().clone().requires_grad_()
    function(first, *given[1:]).backward(out)
    return first.grad


def rows_normed() -> tuple[Any, ...]:
    x = values(16, 64)
    return values(16, 64), x, x.mean(1), torch.rsqrt(x.var(1, correction=0) + 1e-5), values(64), True


def rows_rooted() -> tuple[Any, ...]:
    x = values(16, 64)
    return values(16, 64), x, values(64), torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-5)


def grouped(packed: torch.Tensor, shared: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    return packed @ shared


def divergence(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Jensen and Shannon's, of logarithms of probabilities."""
    mean = ((x.exp() + y.exp()) / 2).log()
    return sum(functional.kl_div(mean, each, log_target=True, reduction="batchmean") for each in (x, y)) / 2


TOKENS = (2, 8)


def chosen(below: int, *shape: int) -> torch.Tensor:
    """Numbers that are the same each time."""
    return (torch.arange(math.prod(shape), device="cuda") * 7 % below).reshape(shape)


def policy() -> tuple[Any, ...]:
    logits, (batch, length) = values(2, 9, 64), TOKENS
    picked = import_module("examples.grpo_loss").extract_selected_logits_pytorch(logits[:, :-1], chosen(64, *TOKENS), 0.9)
    return logits, picked, values(*TOKENS), values(*TOKENS), values(batch), torch.ones(batch, length, device="cuda"), 0.9, 0.2, 0.2, 0.4


def policy_loss(logits: torch.Tensor, picked: torch.Tensor, old: torch.Tensor, reference: torch.Tensor, *others: Any) -> torch.Tensor:
    return import_module("examples.grpo_loss").torch_grpo_loss(logits, old, reference, chosen(64, *TOKENS), *others)[0]


def policy_given_back() -> tuple[Any, ...]:
    logits, picked, *others = policy()
    sums = (logits[:, :-1] / others[4]).logsumexp(-1)
    return values(*TOKENS), logits, picked, chosen(64, *TOKENS), *others[:4], sums, *others[4:]


def policy_gradient(out: torch.Tensor, logits: torch.Tensor, picked: torch.Tensor, _chosen: torch.Tensor, *others: Any) -> torch.Tensor:
    return gradient(lambda x: policy_loss(x, picked, *others[:4], *others[5:]), out, logits)


def routed() -> tuple[Any, ...]:
    return import_module("examples.moe_matmul_ogs").moe_matmul_ogs_helion_kernel_args_gen(values(40, 32), values(4, 32, 16), chosen(4, 40))


def decays(*shape: int) -> torch.Tensor:
    return -(values(*shape).abs() * 0.1).cumsum(-1)


def gated_states() -> tuple[Any, ...]:
    keys, weights, inputs = (functional.rms_norm(values(1, 96, 2, 16), [16]).to(torch.bfloat16) for _ in range(3))
    return keys * 0.25, weights * 0.25, inputs, decays(1, 2, 96).mT.contiguous(), 32


HALF = torch.float16
BRAIN = torch.bfloat16
EXAMPLES = {
    "jagged_dense_add": Example(
        "jagged_dense_add", "jagged_dense_add_2d", lambda: (*jagged(), values(4, 8)), "jagged_dense_add_2d_reference"
    ),
    "jagged_dense_bmm": Example(
        "jagged_dense_bmm",
        "jagged_dense_bmm",
        lambda: (*reversed(jagged(16)), values(4, 16, 16), values(4, 16)),
        "jagged_dense_bmm_reference",
    ),
    "jagged_softmax": Example("jagged_softmax", "jagged_softmax_kernel", lambda: jagged(16), "reference_jagged_softmax_pytorch"),
    "jagged_sum": Example("jagged_sum", "jagged_sum_kernel", lambda: jagged(16), "reference_jagged_sum_kernel_pytorch"),
    "jagged_mean": Example(
        "jagged_mean",
        "jagged_mean_kernel",
        lambda: (*jagged(8), torch.tensor([8, 5, 1, 3], dtype=torch.int32, device="cuda"), 8),
        "reference_jagged_mean_kernel_pytorch",
    ),
    "jagged_layer_norm": Example(
        "jagged_layer_norm", "jagged_layer_norm_kernel", lambda: (*jagged(16), 1e-6), "reference_jagged_layer_norm_pytorch"
    ),
    "kl_div": Example(
        "kl_div",
        "kl_div_forward",
        lambda: (values(16, 64).log_softmax(1), values(16, 64).softmax(1), False, "batchmean", 1e-10),
        lambda x, y, *_: functional.kl_div(x, y, reduction="batchmean"),
    ),
    "fp8_gemm": Example(
        "fp8_gemm",
        "fp8_gemm",
        lambda: tuple(values(32, 32, dtype=torch.float8_e4m3fn) for _ in range(2)),
        lambda x, y: x.float() @ y.float(),
    ),
    "int4_gemm": Example(
        "int4_gemm",
        "matmul_bf16_int4",
        lambda: (values(32, 32, dtype=BRAIN), numbers(127, 16, 32).to(torch.int8)),
        "reference_matmul_bf16_int4",
    ),
    "bf16xint16_gemm": Example(
        "bf16xint16_gemm",
        "_bf16xint16_gemm",
        lambda: (values(32, 32, dtype=BRAIN), numbers(9, 32, 32).to(torch.int16)),
        lambda x, w: x @ w.to(BRAIN),
    ),
    "rope": Example(
        "rope", "rope_fwd", lambda: (values(1, 2, 16, 32), values(1, 2, 16, 32), values(1, 16, 32), values(1, 16, 32)), "rope_pytorch"
    ),
    "segment_reduction": Example(
        "segment_reduction",
        "segmented_reduction_helion",
        lambda: (numbers(8, 40).sort().values, values(40, 16), 8),
        "segmented_reduction_pytorch",
    ),
    "se_block": Example("se_block", "se_block_fwd", lambda: (values(16, 32), values(32, 32)), "se_block_pytorch"),
    "squeeze_and_excitation_net": Example(
        "squeeze_and_excitation_net",
        "squeeze_and_excitation_net_fwd",
        lambda: (values(16, 32), values(32, 16), values(16, 32)),
        "squeeze_and_excitation_net_pytorch",
    ),
    "grouped_gemm": Example(
        "grouped_gemm",
        "grouped_gemm_jagged",
        lambda: (values(48, 32, dtype=HALF), values(32, 32, dtype=HALF), torch.tensor([0, 16, 20, 48], dtype=torch.int32, device="cuda")),
        grouped,
    ),
    "jsd": Example("jsd", "jsd_forward", lambda: tuple(values(16, 64).log_softmax(1) for _ in range(2)), divergence),
    "fused_linear_jsd": Example(
        "fused_linear_jsd",
        "fused_linear_jsd_kernel",
        lambda: (0.5, -100, 1.0, values(16, 64), values(16, 64)),
        lambda b, i, t, x, y: divergence(x.log_softmax(1), y.log_softmax(1)),
    ),
    "grpo_loss": Example("grpo_loss", "grpo_loss_forward", policy, policy_loss),
    "grpo_loss_backward": Example("grpo_loss", "grpo_loss_backward", policy_given_back, policy_gradient),
    "mamba2_chunk_state": Example(
        "mamba2_chunk_state",
        "helion_mamba2_chunk_state_kernel",
        lambda: (values(1, 64, 1, 16), values(1, 64, 2, 16), values(1, 2, 2, 32), decays(1, 2, 2, 32)),
        "ref_chunk_state",
    ),
    "mamba2_chunk_scan": Example(
        "mamba2_chunk_scan",
        "helion_mamba2_chunk_scan_kernel",
        lambda: (
            values(1, 2, 1, 32, 32),
            values(1, 64, 2, 16),
            values(1, 2, 2, 32),
            decays(1, 2, 2, 32),
            values(1, 64, 1, 16),
            values(1, 2, 2, 16, 16),
            values(2),
        ),
        "ref_chunk_scan",
    ),
    "gdn_fwd_h": Example("gdn_fwd_h", "helion_gdn_fwd_h", gated_states, "ref_gdn_fwd_h"),
    "moe_matmul_ogs": Example(
        "moe_matmul_ogs",
        "moe_matmul_ogs",
        routed,
        lambda a, w, *_: import_module("examples.moe_matmul_ogs").moe_matmul_ogs_reference(a, w, chosen(4, 40)),
    ),
    "split_k_barrier": Example("split_k_barrier", "split_k_matmul", lambda: (values(32, 128), values(128, 32)), torch.matmul),
    "xsa": Example("xsa", "xsa_kernel", lambda: (*(values(1, 1, 64, 32, dtype=HALF) for _ in range(3)), 1e-6), "ref_xsa"),
    "exp_grad": Example("exp", "exp_bwd", lambda: (values(200), values(200)), torch.mul),
    "softmax_grad": Example(
        "softmax", "softmax_bwd", lambda: (values(16, 64), values(16, 64).softmax(1)), lambda g, y: y * (g - (g * y).sum(1, keepdim=True))
    ),
    "swiglu_grad": Example(
        "swiglu",
        "swiglu_bwd",
        lambda: tuple(values(8, 64) for _ in range(3)),
        lambda g, a, b: gradient(lambda x, y: functional.silu(x) * y, g, a, b),
    ),
    "geglu_grad": Example(
        "geglu", "geglu_bwd", lambda: tuple(values(8, 64) for _ in range(3)), lambda g, a, b: gradient(gated_gelu, g, a, b)
    ),
    "layer_norm_grad": Example(
        "layer_norm", "layer_norm_bwd", rows_normed, lambda g, x, mean, root, weight, _: gradient(normed, g, x, weight, weight)
    ),
    "rms_norm_grad": Example("rms_norm", "rms_norm_bwd", rows_rooted, lambda g, x, weight, root: gradient(rooted, g, x, weight)),
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


def run(name: str) -> None:
    torch.manual_seed(1)
    example = EXAMPLES[name]
    module = import_module(f"examples.{example.file}")
    given = example.given()
    found = getattr(module, example.function)(*given)
    first = found[0] if isinstance(found, tuple) else found
    said = (getattr(module, example.expected) if isinstance(example.expected, str) else example.expected)(*given)
    expected = (said[0] if isinstance(said, tuple) else said).to(first.dtype)
    print(f"{name}: largest error {float((first.float() - expected.float()).abs().max()):.1e}")
    torch.testing.assert_close(first, expected, rtol=2e-2, atol=2e-2)


def main(checkout: str, *names: str) -> None:
    sys.path.insert(0, checkout)
    for name in names:
        run(name)


if __name__ == "__main__":
    main(*sys.argv[1:])
