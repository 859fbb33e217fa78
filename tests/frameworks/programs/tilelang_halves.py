"""tilelang: CTAs hand rows on. With `racy`, no barrier of the grid stands between the two halves."""

import sys

import tilelang
import tilelang.language as T  # noqa: N812 - as its programs have it
import torch

RACY = "racy" in sys.argv


@tilelang.jit
def turned(count, block):
    @T.prim_func
    def main(x: T.Tensor((count,), "float32"), mid: T.Tensor((count,), "float32"), out: T.Tensor((count,), "float32")):
        with T.Kernel(count // block, threads=block) as bx:
            i = T.get_thread_binding()
            mid[bx * block + i] = x[bx * block + i] * 2
            if not RACY:
                T.sync_grid()
            out[bx * block + i] = mid[count - 1 - (bx * block + i)]  # reader

    return main


x = torch.randn(256, device="cuda")
mid, out = torch.zeros_like(x), torch.zeros_like(x)
turned(256, 64)(x, mid, out)
assert RACY or torch.equal(out, 2 * x.flip(0))
