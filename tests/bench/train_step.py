"""A training step of a small transformer with a kernel of Triton in each layer, about 290 calls of the driver a step: what following costs.

    python tests/bench/train_step.py                                 the program alone
    consan run tests/bench/train_step.py                             sanitized
    consan run --global off tests/bench/train_step.py                without following the driver's calls

Each prints the milliseconds of a step, the memory of the device, and the loss after 45 steps (5 and `TRAIN_STEPS`), which must be the same.
`bench_train.py` measures them side by side. Needs torch and Triton on a GPU.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch import nn

WARM, TIMED, WIDTH, CLASSES = 5, int(os.environ.get("TRAIN_STEPS", "40")), 256, 1000


@triton.jit
def doubled(given, made, n, block: tl.constexpr):  # type: ignore[no-untyped-def]
    """Twice an array."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(made + at, tl.load(given + at, mask=at < n) * 2.0, mask=at < n)


class Doubled(torch.autograd.Function):
    """The same for autograd."""

    @staticmethod
    def forward(_: Any, given: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        """Launch the kernel."""
        given, made = given.contiguous(), torch.empty_like(given)
        doubled[(triton.cdiv(given.numel(), 1024),)](given, made, given.numel(), block=1024)
        return made

    @staticmethod
    def backward(_: Any, given: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        """The derivative is the kernel itself."""
        return Doubled.forward(_, given)


class Layer(nn.Module):
    """Attention and two linear maps."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.before, self.behind = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.maps = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        """One layer."""
        given = self.before(given + self.attention(given, given, given, need_weights=False)[0])
        return self.behind(Doubled.apply(given) + self.maps(given))


def _used() -> int:
    free, total = torch.cuda.mem_get_info()
    return int(total - free) >> 20


def training() -> Callable[[], torch.Tensor]:
    """The model on the device; what is given makes a step, and gives its loss."""
    torch.manual_seed(0)
    if "TRAIN_STEPS" in os.environ:  # compared to the last bit
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.backends.cuda.enable_mem_efficient_sdp(False)
    model = nn.Sequential(*(Layer() for _ in range(4)), nn.Linear(WIDTH, CLASSES)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, foreach=True)
    given, wanted = torch.randn(8, 128, WIDTH, device="cuda"), torch.randint(0, CLASSES, (8 * 128,), device="cuda")

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(given).view(-1, CLASSES), wanted)
        loss.backward()
        optimizer.step()
        return loss

    return step


def main() -> None:
    """Train, and print the time of a step."""
    step = training()
    for _ in range(WARM):
        step()
    torch.cuda.synchronize()
    print(f"step device {_used()} MiB at first", flush=True)
    begun = time.perf_counter()
    for _ in range(TIMED):
        loss = step()
    torch.cuda.synchronize()
    print(f"step {1e3 * (time.perf_counter() - begun) / TIMED:.2f} ms, device {_used()} MiB\nloss {loss.item():.9g}", flush=True)


if __name__ == "__main__":
    main()
