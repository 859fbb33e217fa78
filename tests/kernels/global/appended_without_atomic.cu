// Warps append their elements at an index that they take from a counter. The counter is loaded and stored: two warps get one index, and
// then store to the same elements. Those races follow from the first one.
//
// launch: grid=2 block=64
// arg:    x u32[128]=arange
// arg:    count u32[1]=zeros
// arg:    out u32[128]=zeros
// result: count = np.full(1, 84, np.uint32)
// expect: global-race @take @take severity=error
// allow: global-race WAW @take @take severity=error
// allow: data-race WAR @take @take severity=error
// allow: data-race WAW @take @take severity=error
// allow: global-race WAW @store @store severity=error
// allow: data-race WAW @store @store severity=error
extern "C" __global__ void kernel(const unsigned* x, unsigned* count, unsigned* out) {
    unsigned lane = threadIdx.x % 32, kept = __ballot_sync(~0u, lane % 3 != 0), first;
#ifdef RACY
    if (lane == 0) first = *count, *count = first + __popc(kept);  /*@take*/
#else
    if (lane == 0) first = atomicAdd(count, __popc(kept));
#endif
    first = __shfl_sync(~0u, first, 0);
    if (kept >> lane & 1) out[first + __popc(kept & ((1u << lane) - 1))] = x[blockIdx.x * 64 + threadIdx.x];  /*@store*/
}
