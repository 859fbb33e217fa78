// The same in a loop: the warps stay in step, since each branch has one __syncthreads(). A warning, and no error.
// launch: grid=1 block=128
// arg: x f32[512]=random
// arg: out f32[128]=zeros
// expect: barrier-misuse @first @second severity=warning
// result: out = x.reshape(4, 128)[:, ::-1].sum(axis=0)
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[128];
    int t = threadIdx.x;
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < 4; i++) {
        tile[t] = x[i * 128 + t];
#ifdef RACY
        if (t < 64) {
            __syncthreads();  /*@first*/
            sum += tile[127 - t];
        } else {
            __syncthreads();  /*@second*/
            sum += tile[127 - t];
        }
#else
        __syncthreads();
        sum += tile[127 - t];
#endif
        __syncthreads();
    }
    out[t] = sum;
}
