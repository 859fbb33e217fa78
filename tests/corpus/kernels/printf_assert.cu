// Device printf, assert, local arrays, indirect calls and a switch table: what kernels carry besides memory and barriers.
#include <cassert>
#include <cstdio>

using Step = int (*)(int);
__device__ __noinline__ int twice(int x) { return 2 * x; }
__device__ __noinline__ int square(int x) { return x * x; }
__device__ Step steps[2] = {twice, square};

extern "C" __global__ void printf_assert(const int* in, int* out, int n)
{
    __shared__ int seen[64];
    int local[16];
    const int lane = threadIdx.x;
    for (int i = 0; i < 16; ++i) local[i] = in[(lane + i) % n];
    assert(n > 0);
    seen[lane] = steps[lane & 1](local[in[lane] & 15]);
    __syncthreads();
    int value = seen[63 - lane];
    switch (value & 7) {
    case 0: value += 3; break;
    case 1: value *= 5; break;
    case 2: value ^= lane; break;
    case 3: value -= in[0]; break;
    case 4: value <<= 2; break;
    case 5: value = ~value; break;
    default: value = -value;
    }
    if (lane == 0) printf("value %d of %d\n", value, n);
    out[lane] = value;
}
