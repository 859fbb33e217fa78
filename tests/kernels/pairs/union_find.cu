// Connected components: hooking by CAS on roots, pointer jumping; seqlock-protected statistics.
// launch: grid=2 block=64
// arg: edge u32[128]=random
// arg: parent u32[128]=arange
// arg: seq u32[1]=zeros
// arg: stats u32[2]=zeros
// arg: out u32[4]=zeros
// bug 1: global-race find reads parents with plain loads
// bug 2: global-race|data-race compression by plain stores
// bug 3: global-race hook by plain store
// bug 4: global-race writers of stats are not excluded
// bug 5: clean reads through atomics
__device__ unsigned find(unsigned* parent, unsigned v) {
#if BUG == 1
    unsigned p = parent[v];
    while (p != v) v = p, p = parent[v];
#elif BUG == 5
    unsigned p = atomicAdd(&parent[v], 0u);
    while (p != v) v = p, p = atomicAdd(&parent[v], 0u);
#else
    unsigned p = ((volatile unsigned*)parent)[v];
    while (p != v) {
        unsigned g = ((volatile unsigned*)parent)[p];
#if BUG == 2
        parent[v] = g;
#endif
        v = p, p = g;
    }
#endif
    return v;
}
extern "C" __global__ void kernel(const unsigned* edge, unsigned* parent, unsigned* seq, unsigned* stats, unsigned* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, u = i, v = (i + 1 + edge[i]) % 128;
    while (true) {
        u = find(parent, u), v = find(parent, v);
        if (u == v) break;
        if (u < v) { unsigned w = u; u = v; v = w; }
#if BUG == 3
        parent[u] = v;
        break;
#else
        if (atomicCAS(&parent[u], u, v) == u) break;
#endif
    }
    if (threadIdx.x == 0) {
#if BUG != 4
        while (atomicCAS(seq, 0u, 1u)) {}
        __threadfence();
#endif
        stats[0] += 1;
        stats[1] += u;
#if BUG != 4
        __threadfence();
        atomicExch(seq, 0u);
#endif
    }
}
