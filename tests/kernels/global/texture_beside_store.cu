// R-TX1: a fetch of bytes that the launch has written is a bug, whatever lies between: the path of textures is not kept coherent with writes
// of the same launch, nor are loads with .nc.
//
// launch: grid=1 block=64
// arg:    data f32[64]=zeros
// arg:    plane tex:data,memory=linear
// arg:    out f32[64]=zeros
// expect: data-race RAW @store @fetch severity=error
// backends: cpu
// result: out = np.arange(64, dtype=np.float32)[::-1]
extern "C" __global__ void kernel(float* data, unsigned long long plane, float* out) {
    data[threadIdx.x] = threadIdx.x;  /*@store*/
    __syncthreads();
#ifdef RACY
    float value, unused;
    asm volatile("tex.1d.v4.f32.s32 {%0, %1, %1, %1}, [%2, {%3}];" : "=f"(value), "=f"(unused) : "l"(plane), "r"(63 - threadIdx.x) : "memory");  /*@fetch*/
    out[threadIdx.x] = value;
#else
    out[threadIdx.x] = data[63 - threadIdx.x];
#endif
}
