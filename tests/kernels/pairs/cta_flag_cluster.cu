// Flags with release and acquire between CTAs of one cluster (through DSMEM) and between clusters (global), with cuda::atomic_ref.
// launch: grid=4 block=64 arch=sm_90
// arg: x f32[4,64]=random
// arg: work f32[4,64]=zeros
// arg: flags u32[4]=zeros
// arg: out f32[4,64]=zeros
// result: out = x[[1, 0, 3, 2]] + x[[2, 3, 0, 1]]
// bug 1: scope release.cluster for data of another cluster
// bug 2: scope acquire.cluster of it
// bug 3: scope|data-race|missing-wait release.cta in the cluster
// bug 4: data-race|scope relaxed in the cluster
// bug 5: data-race|global-race|scope volatile flags in global memory, fence missing on the writer's side
// bug 6: global-race the reading side has no fence
// bug 7: clean volatile with fences on both sides
// bug 8: scope fence.acq_rel.cta (threadfence_block) beside the volatile flag
// bug 9: lifetime no cluster barrier at the end
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(64) kernel(const float* x, float* work, u32* flags, float* out) {
    __shared__ float box[64];
    __shared__ u32 ready;
    const u32 t = threadIdx.x, rank = cluster_rank(), cta = blockIdx.x;
    if (t == 0) ready = 0;
    CLUSTER_SYNC();
    box[t] = x[cta * 64 + t];
    work[cta * 64 + t] = x[cta * 64 + t];
    __syncthreads();
    if (t == 0) {
        // To the peer: look at my box.
#if BUG == 3
        PUT_FLAG("cta", peer(&ready, rank ^ 1), 1);
#elif BUG == 4
        asm volatile("st.relaxed.cluster.shared::cluster.u32 [%0], 1;" ::"r"(peer(&ready, rank ^ 1)) : "memory");
#else
        PUT_FLAG("cluster", peer(&ready, rank ^ 1), 1);
#endif
#if BUG == 1
        asm volatile("st.release.cluster.global.u32 [%0], 1;" ::"l"(flags + cta) : "memory");
#elif BUG >= 5 && BUG <= 8
#if BUG == 8
        __threadfence_block();
#elif BUG != 5
        __threadfence();
#endif
        *(volatile u32*)(flags + cta) = 1;
#else
        asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flags + cta) : "memory");
#endif
        u32 seen;
        do {
            asm volatile("ld.acquire.cluster.shared::cta.u32 %0, [%1];" : "=r"(seen) : "r"(shared(&ready)) : "memory");
        } while (!seen);
        do {
#if BUG == 2
            asm volatile("ld.acquire.cluster.global.u32 %0, [%1];" : "=r"(seen) : "l"(flags + (cta ^ 2)) : "memory");
#elif BUG >= 5 && BUG <= 8
            seen = *(volatile u32*)(flags + (cta ^ 2));
#else
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flags + (cta ^ 2)) : "memory");
#endif
        } while (!seen);
#if BUG == 5 || BUG == 7 || BUG == 8
        __threadfence();
#endif
    }
    __syncthreads();
    float v;
    GET(v, peer(&box[t], rank ^ 1));
    out[cta * 64 + t] = v + work[(cta ^ 2) * 64 + t];
#if BUG != 9
    CLUSTER_SYNC();
#endif
}
