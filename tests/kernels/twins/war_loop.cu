// One tile is refilled in every iteration; the racy twin has no barrier between an iteration's loads and the next stores.
// launch: grid=1 block=128
// arg: x f32[512]=arange
// arg: out f32[128]=zeros
// arg: rounds i32=4
// expect: data-race WAR @write @read severity=error
// result: out = x.reshape(4, 128)[:, ::-1].sum(axis=0)
extern "C" __global__ void kernel(const float* x, float* out, int rounds) {
    __shared__ float tile[128];
    int t = threadIdx.x;
    float sum = 0.0f;
#pragma unroll 1
    for (int k = 0; k < rounds; k++) {
        tile[t] = x[k * 128 + t];  /*@write*/
        __syncthreads();
        sum += tile[127 - t];  /*@read*/
#ifndef RACY
        __syncthreads();
#endif
    }
    out[t] = sum;
}
