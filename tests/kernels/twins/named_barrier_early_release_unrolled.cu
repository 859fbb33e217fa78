// A full and an empty barrier between a producer and a consumer warp; the racy consumer releases it before it reads. Unrolled.
// launch: grid=1 block=64
// arg: x f32[128]=arange
// arg: out f32[32]=zeros
// expect: data-race WAR @write @read severity=error
// result: out = x.reshape(4, 32)[:, ::-1].sum(axis=0)
#define FULL "1"
#define EMPTY "2"
#define SYNC(id) asm volatile("bar.sync " id ", 64;" ::: "memory")
#define ARRIVE(id) asm volatile("bar.arrive " id ", 64;" ::: "memory")
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float buffer[32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp == 0) {
#pragma unroll
        for (int k = 0; k < 4; k++) {
            SYNC(EMPTY);
            buffer[lane] = x[k * 32 + lane];  /*@write*/
            ARRIVE(FULL);
        }
    } else {
        float sum = 0.0f;
        ARRIVE(EMPTY);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            SYNC(FULL);
#ifdef RACY
            if (k + 1 < 4) ARRIVE(EMPTY);
#endif
            sum += buffer[31 - lane];  /*@read*/
#ifndef RACY
            if (k + 1 < 4) ARRIVE(EMPTY);
#endif
        }
        out[lane] = sum;
    }
}
