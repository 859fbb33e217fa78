// A full and an empty barrier between a producer and a consumer warp; the racy producer publishes the buffer before it writes.
// launch: grid=1 block=64
// arg: x f32[128]=arange
// arg: out f32[32]=zeros
// arg: rounds i32=4
// expect: data-race RAW @write @read severity=error
// result: out = x.reshape(4, 32)[:, ::-1].sum(axis=0)
#define FULL "1"
#define EMPTY "2"
#define SYNC(id) asm volatile("bar.sync " id ", 64;" ::: "memory")
#define ARRIVE(id) asm volatile("bar.arrive " id ", 64;" ::: "memory")
extern "C" __global__ void kernel(const float* x, float* out, int rounds) {
    __shared__ float buffer[32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp == 0) {
#pragma unroll 1
        for (int k = 0; k < rounds; k++) {
            SYNC(EMPTY);
#ifdef RACY
            ARRIVE(FULL);
#endif
            buffer[lane] = x[k * 32 + lane];  /*@write*/
#ifndef RACY
            ARRIVE(FULL);
#endif
        }
    } else {
        float sum = 0.0f;
        ARRIVE(EMPTY);
#pragma unroll 1
        for (int k = 0; k < rounds; k++) {
            SYNC(FULL);
            sum += buffer[31 - lane];  /*@read*/
            if (k + 1 < rounds) ARRIVE(EMPTY);
        }
        out[lane] = sum;
    }
}
