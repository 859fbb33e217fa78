// Barriers and collectives in branches and loops that are uniform for each warp, and differ from warp to warp.
// launch: grid=1 block=128
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// result: out = x
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[128];
    int t = threadIdx.x, warp = t / 32;
    tile[t] = x[t];
    if (warp < 2) asm volatile("bar.sync 1, 64;" ::: "memory");
    float sum = 0;
    for (int i = 0; i <= warp; ++i) sum += __shfl_sync(0xffffffff, tile[warp < 2 ? 63 - t : t], i);
    if (warp == 3) { for (int i = 0; i < 2; ++i) asm volatile("bar.sync 2, 32;" ::: "memory"); }
    __syncthreads();
    out[t] = tile[t] + 0 * sum;
}
