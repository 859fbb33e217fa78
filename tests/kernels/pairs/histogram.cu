// Histogram: privatised per warp in shared memory, flushed by atomics; grid-stride.
// launch: grid=4 block=128
// arg: x u32[2048]=random
// arg: h u32[8]=zeros
// result: h = np.bincount(x, minlength=8)
// bug 1: data-race no barrier after zeroing
// bug 2: data-race no barrier before the flush
// bug 3: data-race|global-race flush by +=
// bug 4: data-race plain increments in shared memory
// bug 5: global-race flush by one store for CTA 0 and atomics for others
// bug 6: clean warp aggregated with match_any
extern "C" __global__ void kernel(const unsigned* x, unsigned* h) {
    __shared__ unsigned part[4][8];
    const int t = threadIdx.x, warp = t / 32;
    if (t < 32) part[t / 8][t % 8] = 0;
#if BUG != 1
    __syncthreads();
#endif
    for (int i = blockIdx.x * blockDim.x + t; i < 2048; i += gridDim.x * blockDim.x) {
#if BUG == 4
        part[warp][x[i]]++;
#elif BUG == 6
        unsigned peers = __match_any_sync(~0u, x[i]);
        if (t % 32 == __ffs(peers) - 1) part[warp][x[i]] += __popc(peers);
        __syncwarp();
#else
        atomicAdd(&part[warp][x[i]], 1u);
#endif
    }
#if BUG != 2
    __syncthreads();
#endif
    if (t < 8) {
        unsigned sum = part[0][t] + part[1][t] + part[2][t] + part[3][t];
#if BUG == 3
        h[t] += sum;
#elif BUG == 5
        if (blockIdx.x == 0) h[t] = sum;
        else atomicAdd(&h[t], sum);
#else
        atomicAdd(&h[t], sum);
#endif
    }
}
