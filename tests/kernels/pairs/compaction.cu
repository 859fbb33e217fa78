// Stream compaction: warps reserve room with one atomic, the last CTA writes the total and a terminator.
// launch: grid=4 block=64
// arg: x i32[4,64]=arange
// arg: cursor u32[2]=zeros
// arg: out i32[300]=zeros
// arg: info u32[4]=zeros
// bug 1: global-race each CTA adds its count to the cursor plainly
// bug 2: global-race|data-race base is added before it was handed to the lanes: all warps write from their own zero
// bug 3: global-race the last CTA writes the terminator over the first element, with no fence behind the counter
// bug 4: global-race warn every warp that keeps something says so by a plain store of 1
// bug 5: clean every warp that keeps something says so by atomicOr
// bug 6: global-race|scope done counter has no fence, and the last CTA reads what was kept
// bug 7: scope cursor at block scope
// bug 8: clean the lanes that keep aggregate by match of their activity: coalesced form
extern "C" __global__ void kernel(const int* __restrict__ x, unsigned* cursor, int* out, unsigned* info) {
    int i = blockIdx.x * 64 + threadIdx.x, lane = threadIdx.x % 32;
    int v = x[i];
    bool keep = v % 3 == 0;
#if BUG == 8
    if (keep) {
        unsigned active = __activemask(), rank = __popc(active & ((1u << lane) - 1)), base;
        if (rank == 0) base = atomicAdd(cursor, __popc(active));
        base = __shfl_sync(active, base, __ffs(active) - 1);
        out[base + rank] = v;
    }
#else
    unsigned kept = __ballot_sync(~0u, keep), base = 0;
    if (lane == 0)
#if BUG == 1
        { base = *cursor; *cursor = base + __popc(kept); }
#elif BUG == 7
        base = atomicAdd_block(cursor, __popc(kept));
#else
        base = atomicAdd(cursor, __popc(kept));
#endif
#if BUG != 2
    base = __shfl_sync(~0u, base, 0);
#endif
    if (keep) out[base + __popc(kept & ((1u << lane) - 1))] = v;
#if BUG == 4
    if (kept && lane == 0) info[1] = 1;
#elif BUG == 5
    if (kept && lane == 0) atomicOr(info + 1, 1);
#endif
#endif
    __shared__ unsigned last;
    __syncthreads();
    if (threadIdx.x == 0) {
#if BUG != 6
        __threadfence();
#endif
        last = atomicAdd(cursor + 1, 1) == gridDim.x - 1;
        if (last) {
#if BUG == 3
            out[0] = -1;
#else
            unsigned n = *(volatile unsigned*)cursor;
            __threadfence();
            info[0] = n;
            out[n] = -1;
#if BUG == 6
            info[2] = out[0];
#endif
#endif
        }
    }
}
