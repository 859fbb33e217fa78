"""A product in tilelang: one group of warps copies tiles, the other multiplies them. With `racy`, it does not wait for the tiles."""

import sys

import tilelang
import tilelang.language as T  # noqa: N812 - as its programs have it
import torch
from tilelang.carver.arch import driver

RACY = "racy" in sys.argv


@tilelang.jit(out_idx=[-1])
def product(rows, columns, depth, tile, step):
    @T.prim_func
    def main(
        left: T.Tensor((rows, depth), "float16"), right: T.Tensor((depth, columns), "float16"), out: T.Tensor((rows, columns), "float16")
    ):
        with T.Kernel(columns // tile, rows // tile, threads=256) as (bx, by):
            left_tile = T.alloc_shared((tile, step), "float16")
            right_tile = T.alloc_shared((step, tile), "float16")
            sums = T.alloc_fragment((tile, tile), "float32")
            full = T.alloc_barrier(arrive_count=128)
            free = T.alloc_barrier(arrive_count=128)
            with T.ws(1):
                T.clear(sums)
            for k in T.serial(depth // step):
                with T.ws(0):
                    T.barrier_wait(free, (k + 1) % 2)
                    T.tma_copy(left[by * tile, k * step], left_tile, barrier=full)
                    T.tma_copy(right[k * step, bx * tile], right_tile, barrier=full)
                    T.barrier_arrive(full)
                with T.ws(1):
                    if not RACY:
                        T.barrier_wait(full, k % 2)
                    T.gemm(left_tile, right_tile, sums)  # reader
                    T.barrier_arrive(free)
            with T.ws(1):
                T.copy(sums, out[by * tile, bx * tile])

    return main


assert driver.get_num_sms() > 0, "persistent kernels start as many CTAs"
a = torch.randn(64, 128, device="cuda", dtype=torch.float16)
b = torch.randn(128, 128, device="cuda", dtype=torch.float16)
c = product(64, 128, 128, 64, 64)(a, b)
if not RACY:
    torch.testing.assert_close(c, a @ b, rtol=1e-2, atol=1e-2)
