// Jacobi steps over a ring of 4 CTAs with a hand-written grid barrier between steps.
// launch: grid=4 block=64
// arg: a f32[256]=random
// arg: b f32[256]=zeros
// arg: bar u32[2]=zeros
// result: a = __import__("functools").reduce(lambda v, _: np.roll(v, 1) + np.roll(v, -1), range(4), a)
// bug 1: global-race no __syncthreads before the arrival
// bug 2: global-race no fence before the arrival
// bug 3: global-race no barrier after the poll
// bug 4: global-race waits for one CTA too few
// bug 5: global-race in place: reads and writes one array
// bug 6: global-race the barrier is skipped every second step
// bug 7: global-race no fence behind the poll
// bug 8: clean acquire/release atomics in place of the fences
__device__ void grid_barrier(unsigned* bar, unsigned goal) {
#if BUG != 1
    __syncthreads();
#endif
    if (threadIdx.x == 0) {
#if BUG == 8
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(bar) : "memory");
        unsigned seen;
        do { asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(bar) : "memory"); } while (seen < goal);
#else
#if BUG != 2
        __threadfence();
#endif
        atomicAdd(bar, 1u);
#if BUG == 4
        while (*(volatile unsigned*)bar < goal - 1) {}
#else
        while (*(volatile unsigned*)bar < goal) {}
#endif
#if BUG != 7
        __threadfence();
#endif
#endif
    }
#if BUG != 3
    __syncthreads();
#endif
}
extern "C" __global__ void kernel(float* a, float* b, unsigned* bar) {
    const int n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    float *from = a, *to = b;
    for (int step = 0; step < 4; step++) {
#if BUG == 5
        to = from;
#endif
        to[i] = from[(i + n - 1) % n] + from[(i + 1) % n];
#if BUG == 6
        if (step % 2 == 0)
            grid_barrier(bar, (step / 2 + 1) * gridDim.x);
#else
        grid_barrier(bar, (step + 1) * gridDim.x);
#endif
        float* swap = from;
        from = to, to = swap;
    }
}
