// Two producer warps signal two named barriers, two consumer warps wait on one each: the racy twin on the other's.
// launch: grid=1 block=128
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = x.reshape(2, 32)[:, ::-1].reshape(-1)
#ifdef RACY
#define SWAP 1
#else
#define SWAP 0
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float buffer[2][32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, half = warp % 2;
    if (warp < 2) buffer[half][lane] = 0.0f;
    __syncthreads();
    if (warp < 2) {
        buffer[half][lane] = x[half * 32 + lane];  /*@write*/
        asm volatile("bar.arrive %0, 64;" :: "r"(1 + half) : "memory");
    } else {
        asm volatile("bar.sync %0, 64;" :: "r"(1 + (half ^ SWAP)) : "memory");
        out[half * 32 + lane] = buffer[half][31 - lane];  /*@read*/
    }
}
