// G13: a load with .nc of bytes that the launch writes is a bug, whatever lies between.
//
// launch: grid=1 block=64
// arg:    data f32[64]=zeros
// arg:    out f32[64]=zeros
// expect: data-race RAW @store @load severity=error
// result: out = np.arange(64, dtype=np.float32)[::-1]
extern "C" __global__ void kernel(float* data, float* out) {
    data[threadIdx.x] = threadIdx.x;  /*@store*/
    __syncthreads();
#ifdef RACY
    out[threadIdx.x] = __ldg(&data[63 - threadIdx.x]);  /*@load*/
#else
    out[threadIdx.x] = data[63 - threadIdx.x];
#endif
}
