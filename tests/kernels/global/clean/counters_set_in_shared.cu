// Counters in shared memory: atomics, then plain stores between barriers, then atomics again. The module has a fence and a flag in global
// memory, so words in shared memory are looked at as flags too; a plain store ends what their values say.
//
// launch: grid=2 block=64
// arg:    flag u32[1]=zeros
// arg:    out u32[128]=zeros
// result: flag = np.full(1, 2, np.uint32)
extern "C" __global__ void kernel(unsigned* flag, unsigned* out) {
    __shared__ unsigned counters[8];
    if (threadIdx.x < 8) counters[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&counters[threadIdx.x % 8], 1);
    __syncthreads();
    if (threadIdx.x < 8) counters[threadIdx.x] = 100 * threadIdx.x + 7;
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(&counters[threadIdx.x % 8], 2);
    __threadfence();
    if (threadIdx.x == 0) atomicAdd(flag, 1);
}
