// A tile is swapped: what it held is loaded by `ldmatrix`, and nobody uses it. Pallas writes a tile so. Nothing was in it: worth a note, no more.
//
// launch: grid=1 block=32 arch=sm_90a
// arg: out u32[128]=zeros
// expect: uninitialized-read @load severity=note
// result: out = (np.arange(128) % 32).astype(np.uint32)
#include <cuda_runtime.h>

extern "C" __global__ void kernel(unsigned* out)
{
    __shared__ __align__(16) unsigned tile[128];
    const unsigned t = threadIdx.x, row = static_cast<unsigned>(__cvta_generic_to_shared(&tile[4 * t]));
#ifndef RACY
    *reinterpret_cast<uint4*>(&tile[4 * t]) = make_uint4(0, 0, 0, 0);
    __syncwarp();
#endif
    unsigned a, b, c, d;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(row)); /*@load*/
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %1, %1, %1};" ::"r"(row), "r"(t) : "memory");
    __syncwarp();
    for (int i = 0; i < 4; ++i)
        out[4 * t + i] = tile[4 * t + i];
}
