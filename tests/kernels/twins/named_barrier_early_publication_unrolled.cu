// A full and an empty barrier between two warps, in rounds that the compiler unrolls; the racy producer publishes the buffer before it writes.
// launch: grid=1 block=64
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: data-race RAW @write @read severity=error
// allow:  data-race severity=error
// result: out = x.reshape(2, 32)[:, ::-1].reshape(-1)
#define SYNC(id) asm volatile("bar.sync " id ", 64;" ::: "memory")
#define ARRIVE(id) asm volatile("bar.arrive " id ", 64;" ::: "memory")
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float buffer[32];
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int round = 0; round < 2; round++) {
        if (threadIdx.x < 32) {
#ifdef RACY
            ARRIVE("1");
#endif
            buffer[lane] = x[round * 32 + lane];  /*@write*/
#ifndef RACY
            ARRIVE("1");
#endif
            SYNC("2");
        } else {
            SYNC("1");
            out[round * 32 + lane] = buffer[31 - lane];  /*@read*/
            ARRIVE("2");
        }
    }
}
