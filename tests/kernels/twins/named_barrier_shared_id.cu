// Two pairs of warps use one barrier id at the same time: which two warps release each other is luck (R-BAR3).
// launch: grid=1 block=128
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// expect: barrier-misuse @barrier severity=error
// allow: data-race RAW @write @read
// allow: uninitialized-read
// allow: deadlock
// result: out = x.reshape(2, 64)[:, ::-1].reshape(-1)
#ifdef RACY
#define ID 1
#else
#define ID (1 + pair)
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[2][64];
    int pair = threadIdx.x / 64, t = threadIdx.x % 64;
    tile[pair][t] = x[threadIdx.x];  /*@write*/
    asm volatile("bar.sync %0, 64;" :: "r"(ID) : "memory");  /*@barrier*/
    out[threadIdx.x] = tile[pair][63 - t];  /*@read*/
}
