// G6: every thread executes __threadfence() (fence.sc), then a barrier, then thread 0 sets the flag.
//
// launch: grid=2 block=64
// arg:    data f32[64]=zeros
// arg:    flag u32[1]=zeros
// arg:    out f32[64]=zeros
// result: out = np.arange(64, dtype=np.float32)
extern "C" __global__ void kernel(float* data, volatile unsigned* flag, float* out) {
    if (blockIdx.x == 0) {
        data[threadIdx.x] = threadIdx.x;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) *flag = 1;
    } else {
        if (threadIdx.x == 0)
            while (!*flag) {}
        __syncthreads();
        __threadfence();
        out[threadIdx.x] = data[threadIdx.x];
    }
}
