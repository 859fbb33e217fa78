// A scan that looks back: under RACY each CTA sets its flag before it stores the sum that the next CTA reads behind the flag. The compiler
// puts the zero of the lanes that do not look back, a constant of the shuffles, and the sum that is read into one register.
// launch: grid=4 block=32 arch=sm_80
// arg: x u32[128]=arange
// arg: state u32[8]=zeros
// arg: tickets u32[1]=zeros
// arg: out u32[128]=zeros
// expect: missing-order @read @sum severity=warning
// result: out = np.cumsum(x, dtype=np.uint32)
extern "C" __global__ void kernel(const unsigned* x, volatile unsigned* state, unsigned* tickets, unsigned* out) {
    unsigned lane = threadIdx.x, tile = 0, before = 0;
    if (lane == 0) tile = atomicAdd(tickets, 1);
    tile = __shfl_sync(~0u, tile, 0);
    unsigned value = x[tile * 32 + lane];
    for (int step = 1; step < 32; step *= 2) {
        unsigned lower = __shfl_up_sync(~0u, value, step);
        if (lane >= step) value += lower;
    }
    if (lane == 31) {
        if (tile) {
            while (state[2 * (tile - 1)] == 0) {}
            __threadfence();
            before = state[2 * (tile - 1) + 1];  /*@read*/
        }
#ifdef RACY
        state[2 * tile] = 1;
        __threadfence();
#endif
        state[2 * tile + 1] = before + value;  /*@sum*/
#ifndef RACY
        __threadfence();
        state[2 * tile] = 1;
#endif
    }
    before = __shfl_sync(~0u, before, 31);
    out[tile * 32 + lane] = before + value;
}
