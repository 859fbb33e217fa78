// Decoupled look-back inclusive scan: status and value packed in 64 bits, tile ids from a counter.
// launch: grid=8 block=64
// arg: x u32[512]=random
// arg: state u64[8]=zeros
// arg: counter u32[1]=zeros
// arg: aggregate u32[8]=zeros
// arg: out u32[512]=zeros
// result: out = np.cumsum(x.astype(np.uint64)).astype(np.uint32)
// bug 1: data-race shared tile id not published
// bug 2: data-race prefix not published within the CTA
// bug 3: global-race value and status apart, no fence
// bug 4: data-race warp totals reused without a barrier
// bug 5: clean value and status apart, with fences
// bug 6: global-race value and status apart, the fence after
#define INVALID 0u
#define PARTIAL 1u
#define PREFIX 2u
extern "C" __global__ void kernel(const unsigned* x, unsigned long long* state, unsigned* counter, volatile unsigned* aggregate, unsigned* out) {
    __shared__ unsigned tile_s, totals[2], prefix_s;
    const int t = threadIdx.x, lane = t & 31, warp = t >> 5;
    if (t == 0) tile_s = atomicAdd(counter, 1u);
#if BUG != 1
    __syncthreads();
#endif
    const unsigned tile = tile_s;
    unsigned v = x[tile * 64 + t];
    for (int d = 1; d < 32; d <<= 1) {
        unsigned n = __shfl_up_sync(0xffffffffu, v, d);
        if (lane >= d) v += n;
    }
    if (lane == 31) totals[warp] = v;
#if BUG != 4
    __syncthreads();
#endif
    if (warp == 1) v += totals[0];
    if (t == 63) {
        unsigned total = v, running = 0;
#if BUG == 3 || BUG == 5 || BUG == 6
        // The aggregate lies beside its flag.
        aggregate[tile] = total;
#if BUG == 5
        __threadfence();
#endif
        *(volatile unsigned long long*)&state[tile] = PREFIX;
#if BUG == 6
        __threadfence();
#endif
        for (int p = (int)tile - 1; p >= 0; p--) {
            while (*(volatile unsigned long long*)&state[p] == INVALID) {}
#if BUG == 5 || BUG == 6
            __threadfence();
#endif
            running += ((const unsigned*)aggregate)[p];
        }
#else
        atomicExch(&state[tile], (unsigned long long)(tile == 0 ? PREFIX : PARTIAL) << 32 | total);
        int p = (int)tile - 1;
        while (p >= 0) {
            unsigned long long word = *(volatile unsigned long long*)&state[p];
            unsigned status = word >> 32;
            if (status == INVALID) continue;
            running += (unsigned)word;
            if (status == PREFIX) break;
            p--;
        }
        if (tile) atomicExch(&state[tile], (unsigned long long)PREFIX << 32 | (running + total));
#endif
        prefix_s = running;
    }
#if BUG != 2
    __syncthreads();
#endif
    out[tile * 64 + t] = v + prefix_s;
}
