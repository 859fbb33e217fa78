"""FlashAttention-4 forward, as its users call it. With `racy`, consumers do not wait for the tiles of keys and values that come by TMA."""

import sys

import torch
from flash_attn.cute import flash_attn_func, flash_fwd_sm90

RACY = "racy" in sys.argv
if RACY:
    flash_fwd_sm90.pipeline.PipelineTmaAsync.consumer_wait = lambda *_, **__: None
q, k, v = (torch.randn(1, 128, 1, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
found = flash_attn_func(q, k, v)
found = found[0] if isinstance(found, tuple) else found
if not RACY:
    rows = [each.transpose(1, 2).float() for each in (q, k, v)]
    expected = torch.nn.functional.scaled_dot_product_attention(*rows).transpose(1, 2)
    torch.testing.assert_close(found.float(), expected, rtol=2e-2, atol=2e-2)
