// Each thread overwrites the source of its neighbour's copy while that copies it: its own wait would not be enough, nor a barrier alone.
// launch: grid=1 block=64
// arg: x f32[256]=arange
// arg: out f32[64]=zeros
// expect: data-race WAR @copy @store severity=error
// result: out = x[1::4]
// result: x = np.zeros(256, np.float32)
extern "C" __global__ void kernel(float4* x, float* out) {
    __shared__ __align__(16) float tile[256];
    int t = threadIdx.x;
    unsigned to = (unsigned)__cvta_generic_to_shared(&tile[4 * t]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(__cvta_generic_to_global(&x[t])) : "memory");  /*@copy*/
    asm volatile("cp.async.wait_all;" ::: "memory");
#ifndef RACY
    __syncthreads();
#endif
    x[(t + 1) % 64] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);  /*@store*/
    out[t] = tile[4 * t + 1];
}
