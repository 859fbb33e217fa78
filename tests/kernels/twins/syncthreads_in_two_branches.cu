// Half of the warps call one __syncthreads(), the others another one. The hardware takes both for one barrier; CUDA C++ leaves it undefined.
// launch: grid=1 block=128
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// expect: barrier-misuse @first @second severity=warning
// result: out = x[::-1]
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[128];
    int t = threadIdx.x;
#ifdef RACY
    if (t < 64) {
        tile[t] = x[t];
        __syncthreads();  /*@first*/
        out[t] = tile[127 - t];
    } else {
        tile[t] = x[t];
        __syncthreads();  /*@second*/
        out[t] = tile[127 - t];
    }
#else
    tile[t] = x[t];
    __syncthreads();
    out[t] = tile[127 - t];
#endif
}
