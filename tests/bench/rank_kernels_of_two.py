"""Kernels of bench_two_gpus.py: Triton wants them in a file's first level."""

import triton
import triton.language as tl


@triton.jit
def all_reduce(mine, peer, out, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: N803 - Triton's
    """The sum of both ranks' elements."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(mine + at) + tl.load(peer + at))


@triton.jit
def step(weight, gradient, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: N803 - Triton's
    """A step against the gradient."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(weight + at, tl.load(weight + at) - 0.01 * tl.load(gradient + at))
