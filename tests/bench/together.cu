// CTAs that wait for each other, or may (bench_together.py). All are free of races.

// The last CTA adds up what the others have stored.
extern "C" __global__ void last_block(unsigned* out, unsigned* parts, unsigned* count) {
    parts[blockIdx.x * 32 + threadIdx.x] = threadIdx.x;
    __threadfence();
    __shared__ int am;
    __syncthreads();
    if (threadIdx.x == 0) am = atomicAdd(count, 1) == gridDim.x - 1;
    __syncthreads();
    if (!am) return;
    __threadfence();
    unsigned s = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) s += parts[i * 32 + threadIdx.x];
    out[threadIdx.x] = s;
}

// A barrier of the grid, twice.
extern "C" __global__ void grid_barrier(unsigned* out, unsigned* parts, unsigned* count) {
    for (int r = 0; r < 2; ++r) {
        parts[(r * gridDim.x + blockIdx.x) * 32 + threadIdx.x] = threadIdx.x;
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(count, 1);
            while (*(volatile unsigned*)count < (r + 1) * gridDim.x);
            __threadfence();
        }
        __syncthreads();
        out[(r * gridDim.x + blockIdx.x) * 32 + threadIdx.x] = parts[(r * gridDim.x + (blockIdx.x + 1) % gridDim.x) * 32 + threadIdx.x];
    }
}

// CTAs add to one array in turn, as stream-K does.
extern "C" __global__ void turns(unsigned* out, unsigned* parts, unsigned* count) {
    unsigned seen = 0;
    if (blockIdx.x && threadIdx.x == 0)
        while (seen != blockIdx.x) asm volatile("ld.global.acquire.gpu.b32 %0, [%1];" : "=r"(seen) : "l"(count) : "memory");
    __syncthreads();
    parts[threadIdx.x] += threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(count) : "memory");
}

// A decoupled look-back: one warp of each CTA reads the states of those before it, 32 at a time.
extern "C" __global__ void look_back(unsigned* out, unsigned* parts, unsigned* flags) {
    __shared__ unsigned sh;
    unsigned long long* state = (unsigned long long*)flags;
    int tile = blockIdx.x, lane = threadIdx.x & 31;
    unsigned agg = 1, prefix = 0;
    if (threadIdx.x < 32) {
    if (lane == 0 && tile > 0) { asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" :: "l"(state + tile), "l"((1ull << 32) | agg) : "memory"); }
    if (tile > 0) {
        int at = tile - 1 - lane;
        for (;;) {
            unsigned long long v = 2ull << 32;
            if (at >= 0) do { asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(state + at) : "memory"); } while ((v >> 32) == 0);
            unsigned done = __ballot_sync(~0u, (v >> 32) == 2);
            int first = done ? __ffs(done) - 1 : 32;
            unsigned mine = lane <= first ? (unsigned)v : 0;
            for (int o = 16; o; o >>= 1) mine += __shfl_down_sync(~0u, mine, o);
            prefix += __shfl_sync(~0u, mine, 0);
            if (done) break;
            at -= 32;
        }
    }
    if (lane == 0) { asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" :: "l"(state + tile), "l"((2ull << 32) | (prefix + agg)) : "memory"); sh = prefix; }
    }
    __syncthreads();
    out[(tile * 256 + threadIdx.x) ] = sh;
}
