// A scan that looks back: under RACY each CTA shows its flag before it stores the sum that the next CTA reads behind the flag.
// launch: grid=4 block=32
// arg: x u32[128]=arange
// arg: sums u32[4]=zeros
// arg: flags u32[4]=zeros
// arg: out u32[128]=zeros
// expect: global-race RAW @sum @read severity=error
// result: out = np.cumsum(x, dtype=np.uint32)
extern "C" __global__ void kernel(const unsigned* x, unsigned* sums, unsigned* flags, unsigned* out) {
    unsigned lane = threadIdx.x, tile = blockIdx.x, before = 0;
    unsigned value = x[tile * 32 + lane];
    for (int step = 1; step < 32; step *= 2) {
        unsigned lower = __shfl_up_sync(~0u, value, step);
        if (lane >= step) value += lower;
    }
    if (lane == 31) {
        if (tile) {
            while (*(volatile unsigned*)(flags + tile - 1) == 0) {}
            __threadfence();
            before = sums[tile - 1];  /*@read*/
        }
#ifdef RACY
        __threadfence();
        atomicExch(flags + tile, 1);
#endif
        sums[tile] = before + value;  /*@sum*/
#ifndef RACY
        __threadfence();
        atomicExch(flags + tile, 1);
#endif
    }
    before = __shfl_sync(~0u, before, 31);
    out[tile * 32 + lane] = before + value;
}
