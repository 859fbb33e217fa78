// R-GM3: a barrier of the grid by hand, in a function that is called twice a round. One thread waits for the other CTAs, and nothing
// makes the other threads of its CTA wait for it.
//
// launch: grid=4 block=64
// arg:    x f32[256]=arange
// arg:    y f32[256]=zeros
// arg:    arrived u32[1]=zeros
// backends: cpu
// expect: global-race @look @put severity=error
// allow:  global-race
// result: y = np.roll(np.arange(256), -192).astype(np.float32) + 3
__device__ void grid_barrier(unsigned* arrived, unsigned goal) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1u);
        while (*(volatile unsigned*)arrived < goal) {}
        __threadfence();
    }
#ifndef RACY
    __syncthreads();
#endif
}
extern "C" __global__ void kernel(const float* x, float* y, unsigned* arrived) {
    unsigned n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i];
    for (unsigned r = 1; r <= 2; r++) {
        grid_barrier(arrived, (2 * r - 1) * gridDim.x);
        float neighbour = y[(i + 64 * r) % n];  /*@look*/
        grid_barrier(arrived, 2 * r * gridDim.x);
        y[i] = neighbour + r;  /*@put*/
    }
}
