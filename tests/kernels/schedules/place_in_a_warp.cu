// A list in shared memory: each thread takes a place, as an atomic gives it. Thread 0 reads the place that is its own if it comes first.
// launch:   grid=2 block=48 arch=sm_80
// arg:      y u32[2]=zeros
// expect:   data-race severity=error
// result:   y = np.zeros(2)
// backends: cpu
extern "C" __global__ void kernel(unsigned *y) {
    __shared__ unsigned count, list[48];
    unsigned t = threadIdx.x;
    if (t == 0) count = 0;
    __syncthreads();
    unsigned place = atomicAdd(&count, 1);
    list[place] = t;
#ifndef RACY
    __syncthreads();
#endif
    if (t == 0) y[blockIdx.x] = list[0] * 0 + (list[0] > 47);
}
