// One thread issues bulk loads of 16 KiB and takes the time of each issue, expect_tx included; bench_bulk.py runs it.
extern "C" __global__ void bulk_load(const unsigned char* from, long long* cycles, int rounds) {
    extern __shared__ __align__(128) unsigned char tile[];
    __shared__ unsigned long long full;
    unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(tile)), bar = static_cast<unsigned>(__cvta_generic_to_shared(&full));
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    for (int i = 0; i < rounds; ++i) {
        if (threadIdx.x == 0) {
            long long begin = clock64();
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16384;" ::"r"(bar) : "memory");
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 16384, [%2];"
                         ::"r"(at), "l"(from), "r"(bar) : "memory");
            cycles[i] = clock64() - begin;
        }
        asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra W; }" ::"r"(bar), "r"(i & 1) : "memory");
        __syncthreads();
    }
}
