// A ring in distributed shared memory: rank 0 produces with st.shared::cluster into rank 1's stages, full and empty barriers of cluster scope.
// launch: grid=2 block=64 arch=sm_90
// arg: x f32[6,64]=random
// arg: out f32[64]=zeros
// result: out = x.sum(0)
// bug 1: data-race the producer does not wait for empty
// bug 2: data-race consumers release the stage before they read
// bug 3: scope|data-race full is an arrival of cta scope
// bug 4: deadlock|barrier-misuse|lifetime empty is signalled to the own barrier
// bug 5: lifetime the producer leaves at once, and consumers signal it
// bug 6: data-race|deadlock|barrier-misuse|uninitialized-read the producer maps the stage to its own rank
// bug 7: deadlock|barrier-misuse the producer begins with parity 0
// bug 8: clean one arrival per warp behind __syncwarp, counts of 2
// bug 9: data-race|missing-wait|barrier-misuse|uninitialized-read consumers do not flip the parity of full
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(64) kernel(const float* x, float* out) {
    __shared__ alignas(16) float ring[2][64];
    __shared__ alignas(8) u64 full[2], empty[2];
    const u32 t = threadIdx.x, rank = cluster_rank(), n = BUG == 8 ? 2 : 64;
    if (t < 2) {
        INIT(&full[t], n);
        INIT(&empty[t], n);
        FENCE_INIT();
    }
    CLUSTER_SYNC();
    if (rank == 0) {
#pragma unroll 1
        for (u32 k = 0; k < 6; k++) {
            const u32 s = k & 1;
#if BUG != 1
            WAIT_CLUSTER(&empty[s], (k / 2 & 1) ^ (BUG != 7));
#endif
            PUT(peer(&ring[s][t], BUG == 6 ? 0 : 1), x[k * 64 + t]);
#if BUG == 3
            ARRIVE_THERE_CTA(peer(&full[s], 1));
#elif BUG == 8
            __syncwarp();
            if (t % 32 == 0) ARRIVE_THERE(peer(&full[s], 1));
#else
            ARRIVE_THERE(peer(&full[s], 1));
#endif
        }
    } else {
        float sum = 0;
#pragma unroll 1
        for (u32 k = 0; k < 6; k++) {
            const u32 s = k & 1;
            WAIT_CLUSTER(&full[s], BUG == 9 ? 0 : k / 2 & 1);
#if BUG == 2
            ARRIVE_THERE(peer(&empty[s], 0));
#endif
            sum += ring[s][63 - t];
#if BUG == 4
            ARRIVE(&empty[s]);
#elif BUG == 8
            __syncwarp();
            if (t % 32 == 0) ARRIVE_THERE(peer(&empty[s], 0));
#elif BUG != 2
            ARRIVE_THERE(peer(&empty[s], 0));
#endif
        }
        out[63 - t] = sum;
    }
#if BUG != 5
    CLUSTER_SYNC();
#endif
}
