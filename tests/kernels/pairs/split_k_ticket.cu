// Split-K GEMV-like tile sum: 4 tiles x 4 splits; the last CTA of a tile adds the partial tiles.
// launch: grid=4x4 block=128
// arg: x f32[4,4,256]=random
// arg: partial f32[4,4,128]=zeros
// arg: ticket u32[8]=zeros
// arg: out f32[4,128]=zeros
// result: out = (x[:, :, :128] + x[:, :, 128:]).sum(1)
// bug 1: global-race|scope no fence before the ticket
// bug 2: global-race no barrier between the stores of the CTA and the ticket
// bug 3: global-race fence after the atomic
// bug 4: data-race no barrier after 'last' is written to shared memory
// bug 5: global-race all tiles share one ticket (wrong index): reads too early
// bug 6: scope fence of the CTA
// bug 7: global-race counts to splits-1: off by one
// bug 8: global-race __ldg of the partials
// bug 9: clean ticket with atomicInc that wraps
#define SPLITS 4
extern "C" __global__ void kernel(const float* __restrict__ x, float* partial, unsigned* ticket, float* out) {
    __shared__ bool last;
    const int tile = blockIdx.x, split = blockIdx.y, t = threadIdx.x;
    const float* mine = x + (tile * SPLITS + split) * 256;
    float acc = 0.f;
    for (int k = 0; k < 2; k++) acc += mine[k * 128 + t];
    float* slot = partial + (tile * SPLITS + split) * 128;
    slot[t] = acc;
#if BUG == 6
    __threadfence_block();
#elif BUG != 1 && BUG != 3
    __threadfence();
#endif
#if BUG != 2
    __syncthreads();
#endif
    if (t == 0) {
#if BUG == 5
        unsigned* count = ticket;
#else
        unsigned* count = ticket + tile;
#endif
#if BUG == 9
        unsigned before = atomicInc(count, SPLITS - 1);
#else
        unsigned before = atomicAdd(count, 1u);
#endif
#if BUG == 7
        last = before >= SPLITS - 2;
#elif BUG == 5
        last = before % SPLITS == SPLITS - 1;
#else
        last = before == SPLITS - 1;
#endif
#if BUG == 3
        __threadfence();
#endif
    }
#if BUG != 4
    __syncthreads();
#endif
    if (!last) return;
    __threadfence();
    float sum = 0.f;
    for (int s = 0; s < SPLITS; s++) {
#if BUG == 8
        sum += __ldg(partial + (tile * SPLITS + s) * 128 + t);
#else
        sum += partial[(tile * SPLITS + s) * 128 + t];
#endif
    }
    out[tile * 128 + t] = sum;
#if BUG != 9
    if (t == 0) ticket[tile] = 0;
#endif
}
