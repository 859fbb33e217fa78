"""FlashAttention-4's public function, forward and backward, of a checkout of Dao-AILab/flash-attention:

consan run --device cpu flash_attention_functions.py CHECKOUT HEAD_DIM causal|full SEQUENCE [forward]
"""

from __future__ import annotations

import sys

import torch

CHECKOUT, CAUSAL = sys.argv[1], sys.argv[3] == "causal"
HEAD, SEQUENCE = int(sys.argv[2]), int(sys.argv[4])
sys.path.insert(0, CHECKOUT)

from flash_attn.cute.interface import flash_attn_func  # noqa: E402 - of the checkout

torch.manual_seed(1)
q, k, v = (torch.randn(1, SEQUENCE, 1, HEAD, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
found = flash_attn_func(q, k, v, causal=CAUSAL)
found = found[0] if isinstance(found, tuple) else found
wide = [each.detach().float().requires_grad_() for each in (q, k, v)]
expected = torch.nn.functional.scaled_dot_product_attention(*(each.transpose(1, 2) for each in wide), is_causal=CAUSAL).transpose(1, 2)
print("largest error", float((found.float() - expected).abs().max()))
if "forward" not in sys.argv:
    upstream = torch.randn_like(found)
    ours = torch.autograd.grad(found, (q, k, v), upstream)
    theirs = torch.autograd.grad(expected, wide, upstream.float())
    print("of gradients", [float((one.float() - two).abs().max()) for one, two in zip(ours, theirs, strict=True)])
