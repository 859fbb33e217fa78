// Two of four warps call one __syncthreads() more in each iteration: from then on the warps meet in different iterations (llama.cpp #13469).
// launch: grid=1 block=128
// arg: x f32[512]=random
// arg: out f32[128]=zeros
// expect: barrier-misuse @inner @last severity=error
// allow: data-race
// result: out = x.reshape(4, 128)[:, np.arange(128) ^ 64].sum(axis=0) + (np.arange(128) < 64) * x.reshape(4, 128)[:, 127 - (np.arange(128) ^ 1)].sum(axis=0)
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float a[128], b[128];
    int t = threadIdx.x;
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < 4; i++) {
        a[t] = x[i * 128 + t];
        __syncthreads();
        if (t < 64) {
            b[t] = a[127 - t];
#ifdef RACY
            __syncthreads();  /*@inner*/
#endif
        }
#ifndef RACY
        __syncthreads();
#endif
        sum += a[t ^ 64] + (t < 64 ? b[t ^ 1] : 0);
        __syncthreads();  /*@last*/
    }
    out[t] = sum;
}
