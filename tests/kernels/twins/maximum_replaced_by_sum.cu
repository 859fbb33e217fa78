// The scalar of a softmax holds the maximum, then the sum. In the racy twin thread 0 stores the sum while others still read the maximum. One
// thread writes, so no update is lost: a barrier is missing. The compiler has moved the load to the barrier before it.
// launch: grid=1 block=128
// arg: x f32[256]=random
// arg: out f32[128]=zeros
// expect: data-race @read @write severity=error
// result: out = (x[:128] - x[:128].max() + 2 * (x[128:] - x[:128].max())) / (x[0] - x[:128].max() + 2 * (x[128] - x[:128].max()))
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float partial[4], scalar;
    const unsigned t = threadIdx.x;
    float v[2] = {x[t], x[t + 128]}, m = v[0], s = 0;
    for (int d = 16; d; d /= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, d));
    if (t % 32 == 0) partial[t / 32] = m;
    __syncthreads();
    if (t == 0) scalar = fmaxf(fmaxf(partial[0], partial[1]), fmaxf(partial[2], partial[3]));
    __syncthreads();
    for (int i = 0; i < 2; i++)
        s += (i + 1) * (v[i] - scalar);  /*@read*/
#ifndef RACY
    __syncthreads();
#endif
    if (t == 0) scalar = s;  /*@write*/
    __syncthreads();
    out[t] = s / scalar;
}
