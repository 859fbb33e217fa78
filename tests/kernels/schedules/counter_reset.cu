// The last CTA to arrive sets the counter to zero while another CTA may still wait for its end value: that CTA waits for ever, if it looks
// too late.
// launch:   grid=2 block=32 arch=sm_80
// arg:      count u32[2]=zeros
// arg:      y u32[64]=zeros
// expect:   deadlock severity=error
// result:   y = np.ones(64)
// backends: cpu
extern "C" __global__ void kernel(unsigned *count, unsigned *y) {
    if (threadIdx.x == 0) {
        __threadfence();
        unsigned before = atomicAdd(&count[0], 1);
#ifdef RACY
        if (before == 1) {
            atomicExch(&count[1], 1);
            atomicExch(&count[0], 0);
        } else {
            while (atomicAdd(&count[0], 0) != 2) {}
        }
#else
        if (before == 1) atomicExch(&count[1], 1);
        else while (atomicAdd(&count[1], 0) != 1) {}
#endif
        __threadfence();
    }
    __syncthreads();
    y[32 * blockIdx.x + threadIdx.x] = 1;
}
