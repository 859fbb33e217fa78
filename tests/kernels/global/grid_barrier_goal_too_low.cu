// R-GM3: a barrier of the grid by hand, whose goal grows by one in each round: the first round is right, later ones open before the other CTAs have come.
//
// launch: grid=4 block=64
// arg:    from f32[256]=arange
// arg:    to f32[256]=zeros
// arg:    arrived u32[1]=zeros
// arg:    idle u32[1]=zeros
// backends: cpu
// expect: global-race @step @step severity=error
// result: from = 4 * np.roll(np.arange(256), 4).astype(np.float32)
__device__ void grid_barrier(unsigned* arrived, unsigned goal, unsigned step) {
#ifdef RACY
    goal -= step * (gridDim.x - 1);
#endif
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1u);
        while (*(volatile unsigned*)arrived < goal) {}
        __threadfence();
    }
    __syncthreads();
}
extern "C" __global__ void kernel(float* from, float* to, unsigned* arrived, volatile unsigned* idle) {
    unsigned n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    for (unsigned step = 0; step < 4; step++) {
        for (unsigned look = 0; look < 20 * blockIdx.x; look++) (void)*idle;
        float factor = step % 2 ? 1.f : 2.f;
        to[i] = factor * from[(i + n - 1) % n];  /*@step*/
        grid_barrier(arrived, (step + 1) * gridDim.x, step);
        float* swap = from;
        from = to, to = swap;
    }
}
