// A ring of three stages, refilled two ahead; refilling three ahead overwrites the stage that is being read.
// launch: grid=1 block=64
// arg: x f32[512]=arange
// arg: out f32[64]=zeros
// arg: tiles i32=8
// expect: data-race WAR @refill @read severity=error
// result: out = x.reshape(8, 64)[:, ::-1].sum(axis=0)
#ifdef RACY
#define AHEAD 3
#else
#define AHEAD 2
#endif
extern "C" __global__ void kernel(const float* x, float* out, int tiles) {
    __shared__ float ring[3][64];
    int t = threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < AHEAD; k++) ring[k][t] = x[k * 64 + t];
#pragma unroll 1
    for (int k = 0; k < tiles; k++) {
        __syncthreads();
        sum += ring[k % 3][63 - t];  /*@read*/
        if (k + AHEAD < tiles) {
            ring[(k + AHEAD) % 3][t] = x[(k + AHEAD) * 64 + t];  /*@refill*/
        }
    }
    out[t] = sum;
}
