// Lanes of a warp hold partial results, and all of them store to the warp's slot, as reductions of Triton 3.9 do (triton #4736, #7264, #11614).
// launch: grid=1 block=128
// arg: x f32[128]=arange
// arg: out f32[4]=zeros
// expect: data-race WAW @store severity=error
// result: out = x.reshape(4, 32)[:, :2].sum(1)
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float s[4];
    int t = threadIdx.x;
    float sum = x[t] + __shfl_down_sync(~0u, x[t], 1);
#ifndef RACY
    if (t % 32 == 0)
#endif
        s[t / 32] = sum;  /*@store*/
    __syncthreads();
    if (t < 4) out[t] = s[t];
}
