"""FlashAttention-4's forward for Hopper, of a checkout of Dao-AILab/flash-attention:

consan run --device cpu cute_flash_attention.py CHECKOUT HEAD_DIM causal|full SEQUENCE TILE_M TILE_N
"""

from __future__ import annotations

import sys
import types
from typing import Any

import cutlass
import cutlass.cute as cute
import numpy as np
from cuda.bindings import driver
from cute_arrays import begin, from_device, on_device
from cutlass import Float16, Float32, Int32
from cutlass.cute.runtime import make_ptr

CHECKOUT, CAUSAL = sys.argv[1], sys.argv[3] == "causal"
HEAD, SEQUENCE, TILE_M, TILE_N = (int(sys.argv[at]) for at in (2, 4, 5, 6))


def forward() -> Any:
    """The kernel's class; interface.py, which the package loads, asks for a GPU."""
    package = types.ModuleType("flash_attn.cute")
    package.__path__ = [f"{CHECKOUT}/flash_attn/cute"]
    sys.path.insert(0, CHECKOUT)
    sys.modules["flash_attn.cute"] = package
    from flash_attn.cute.flash_fwd_sm90 import FlashAttentionForwardSm90

    sizes = {"tile_m": TILE_M, "tile_n": TILE_N, "num_stages": 2, "num_threads": 384}
    return FlashAttentionForwardSm90(Float16, HEAD, HEAD, 1, is_causal=CAUSAL, is_local=False, pack_gqa=False, Q_in_regs=False, **sizes)


@cute.jit
def attend(
    kernel: cutlass.Constexpr, arrays: tuple, sums: cute.Pointer, b: Int32, s: Int32, h: Int32, scale: Float32, stream: driver.CUstream
):
    q, k, v, o = [cute.make_tensor(each, cute.make_layout((b, s, h, HEAD), stride=(s * h * HEAD, h * HEAD, HEAD, 1))) for each in arrays]
    kernel(q, k, v, o, cute.make_tensor(sums, cute.make_layout((b, h, s), stride=(h * s, s, 1))), scale, stream=stream)


begin()
rng, scale = np.random.default_rng(1), HEAD**-0.5
q, k, v = (rng.standard_normal((SEQUENCE, HEAD)).astype(np.float16) for _ in range(3))
addresses = [on_device(each) for each in (q, k, v, np.zeros_like(q))]
places = tuple(make_ptr(Float16, each, cute.AddressSpace.gmem, assumed_align=16) for each in addresses)
sums = make_ptr(Float32, on_device(np.zeros(SEQUENCE, np.float32)), cute.AddressSpace.gmem, assumed_align=4)
attend(forward(), places, sums, Int32(1), Int32(SEQUENCE), Int32(1), Float32(scale), driver.CUstream(0))
scores = q.astype(np.float32) @ k.astype(np.float32).T * scale
scores = np.where(np.tril(np.ones_like(scores)) > 0, scores, -np.inf) if CAUSAL else scores
weights = np.exp(scores - scores.max(1, keepdims=True))
expected = weights / weights.sum(1, keepdims=True) @ v.astype(np.float32)
print("largest error", float(np.abs(from_device(addresses[3], q) - expected).max()))
