"""quack's norm of rows, as its users call it. With `racy`, its sum over warps has no barrier between the stores and the loads."""

import sys

import torch
from cutlass import cute
from quack import rmsnorm

RACY = "racy" in sys.argv
if RACY:
    cute.arch.barrier = lambda *_, **__: None
x, weight = torch.randn(2, 4096, device="cuda"), torch.ones(4096, device="cuda")
found = rmsnorm(x, weight)
if not RACY:
    torch.testing.assert_close(found, torch.nn.functional.rms_norm(x, (4096,), weight, 1e-6), rtol=1e-4, atol=1e-4)
