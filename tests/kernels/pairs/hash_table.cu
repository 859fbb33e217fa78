// Open addressing: keys are claimed by CAS; values are added with atomics; then lookups after a grid-wide ticket.
// launch: grid=4 block=64
// arg: keys u32[256]=random
// arg: slots u32[64]=zeros
// arg: values u32[64]=zeros
// arg: done u32[1]=zeros
// arg: out u32[256]=zeros
// result: out = np.array([(keys == k).sum() for k in keys])
// bug 1: global-race claim by test and plain store
// bug 2: global-race values with a plain +=
// bug 3: global-race lookup without waiting for the others
// bug 4: global-race first claimer stores the count plainly
// bug 5: clean lookups of the values by atomic load, keys volatile
extern "C" __global__ void kernel(const unsigned* keys, unsigned* slots, unsigned* values, unsigned* done, unsigned* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, key = keys[i] + 1, h = key * 2654435761u >> 26;
    while (true) {
#if BUG == 1
        unsigned seen = slots[h];
        if (seen == 0) { slots[h] = key; seen = slots[h]; }
        if (seen == key) break;
#else
        unsigned old = atomicCAS(&slots[h], 0u, key);
#if BUG == 4
        if (old == 0) values[h] = 0;
#endif
        if (old == 0 || old == key) break;
#endif
        h = (h + 1) % 64;
    }
#if BUG == 2
    values[h] += 1;
#else
    atomicAdd(&values[h], 1u);
#endif
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(done, 1u);
#if BUG != 3
        while (atomicAdd(done, 0u) != gridDim.x) {}
#endif
        __threadfence();
    }
    __syncthreads();
    unsigned p = key * 2654435761u >> 26;
#if BUG == 5
    while (((volatile unsigned*)slots)[p] != key) p = (p + 1) % 64;
    out[i] = atomicAdd(&values[p], 0u);
#else
    while (slots[p] != key) p = (p + 1) % 64;
    out[i] = values[p];
#endif
}
