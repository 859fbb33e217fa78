// With two buffers one barrier an iteration is enough; with one buffer it is not.
// launch: grid=1 block=64
// arg: x f32[384]=arange
// arg: out f32[64]=zeros
// arg: rounds i32=6
// expect: data-race WAR @write @read severity=error
// result: out = x.reshape(6, 64)[:, ::-1].sum(axis=0)
#ifdef RACY
#define BUFFER(k) 0
#else
#define BUFFER(k) ((k) % 2)
#endif
extern "C" __global__ void kernel(const float* x, float* out, int rounds) {
    __shared__ float tile[2][64];
    int t = threadIdx.x;
    float sum = 0.0f;
#pragma unroll 1
    for (int k = 0; k < rounds; k++) {
        tile[BUFFER(k)][t] = x[k * 64 + t];  /*@write*/
        __syncthreads();
        sum += tile[BUFFER(k)][63 - t];  /*@read*/
    }
    out[t] = sum;
}
