// Every warp works on its own region behind __syncwarp; the racy twin's last lane looks into the next warp's region.
// launch: grid=1 block=128
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = np.roll(x.reshape(4, 32), -1, axis=1).reshape(-1)
#ifdef RACY
#define NEXT(t) (((t) + 1) % 128)
#else
#define NEXT(t) ((t) / 32 * 32 + ((t) + 1) % 32)
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float region[128];
    int t = threadIdx.x;
    region[t] = 0.0f;
    __syncthreads();
    region[t] = x[t];  /*@write*/
    __syncwarp();
    out[t] = region[NEXT(t)];  /*@read*/
}
