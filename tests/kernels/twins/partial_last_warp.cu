// 80 threads: the last warp has 16 lanes, and the barrier must count it like any other.
// launch: grid=2 block=80
// arg: x f32[160]=arange
// arg: out f32[160]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = x.reshape(2, 80)[:, ::-1].reshape(-1)
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[80];
    int t = threadIdx.x, i = blockIdx.x * 80 + t;
    tile[t] = 0.0f;
    __syncthreads();
    tile[t] = x[i];  /*@write*/
#ifndef RACY
    __syncthreads();
#endif
    out[i] = tile[79 - t];  /*@read*/
}
