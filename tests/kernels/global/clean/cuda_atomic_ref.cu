// cuda::atomic_ref with release and acquire, at generic addresses.
//
// launch: grid=2 block=32
// arg:    data f32[32]=zeros
// arg:    flag u32[1]=zeros
// arg:    out f32[32]=zeros
// result: out = np.arange(32, dtype=np.float32)
#include <cuda/atomic>
extern "C" __global__ void kernel(float* data, unsigned* flag, float* out) {
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> ready(*flag);
    if (blockIdx.x == 0) {
        data[threadIdx.x] = threadIdx.x;
        __syncthreads();
        if (threadIdx.x == 0) ready.store(1, cuda::memory_order_release);
    } else {
        if (threadIdx.x == 0)
            while (!ready.load(cuda::memory_order_acquire)) {}
        __syncthreads();
        out[threadIdx.x] = data[threadIdx.x];
    }
}
