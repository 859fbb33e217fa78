"""Sums of columns in Helion, whose tiles of rows add to one result. With `racy`, they do not add atomically."""

import sys

import helion
import helion.language as hl
import torch

RACY = "racy" in sys.argv


@helion.kernel(config=helion.Config(block_sizes=[16]), static_shapes=True)
def sums(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    for tile in hl.tile(x.size(0)):
        part = x[tile, :].sum(0)
        hl.atomic_add(out, [hl.arange(x.size(1))], part)
    return out


@helion.kernel(config=helion.Config(block_sizes=[16]), static_shapes=True)
def sums_without_atomics(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    for tile in hl.tile(x.size(0)):
        part = x[tile, :].sum(0)
        out[:] = out[:] + part  # reader
    return out


a = torch.randn(64, 64, device="cuda")
found = (sums_without_atomics if RACY else sums)(a, torch.zeros(64, device="cuda"))
if not RACY:
    torch.testing.assert_close(found, a.sum(0))
