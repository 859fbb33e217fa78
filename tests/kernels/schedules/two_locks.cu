// Two warps take two locks, each in another order: they hang if each has taken its first one.
// launch:   grid=1 block=64 arch=sm_80
// arg:      y u32[1]=zeros
// expect:   deadlock severity=error
// result:   y = np.array([2])
// backends: cpu
__device__ void lock(unsigned *each) { while (atomicCAS(each, 0, 1) != 0) {} __threadfence_block(); }
__device__ void unlock(unsigned *each) { __threadfence_block(); atomicExch(each, 0); }

extern "C" __global__ void kernel(unsigned *y) {
    __shared__ unsigned locks[2], sum;
    if (threadIdx.x == 0) { locks[0] = locks[1] = 0; sum = 0; }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        unsigned warp = threadIdx.x / 32;
#ifdef RACY
        unsigned first = warp, second = 1 - warp;
#else
        unsigned first = 0, second = 1;
#endif
        lock(&locks[first]);
        lock(&locks[second]);
        sum += 1;
        unlock(&locks[second]);
        unlock(&locks[first]);
    }
    __syncthreads();
    if (threadIdx.x == 0) y[0] = sum;
}
