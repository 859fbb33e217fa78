// A tile comes by a bulk copy, and threads that have waited for it add to its words: what an atomic finds there has been written.
// launch: grid=1 block=64 arch=sm_90a
// arg: x u32[64]=arange
// arg: out u32[64]=zeros
// result: out = np.arange(64) + 1
extern "C" __global__ void kernel(const unsigned* x, unsigned* out) {
    __shared__ alignas(128) unsigned tile[64];
    __shared__ unsigned long long full;
    const unsigned t = threadIdx.x, at = (unsigned)__cvta_generic_to_shared(tile), bar = (unsigned)__cvta_generic_to_shared(&full);
    if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
    __syncthreads();
    if (t == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(bar) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(at), "l"(x), "r"(bar) : "memory");
    }
    asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra W; }" ::"r"(bar) : "memory");
    atomicAdd(&tile[t], 1u);
    out[t] = tile[t];
}
