// A ring of 3 stages by cp.async.cg and .ca with zfill, the tail without copies: wait_group N must fall at the end.
// launch: grid=2 block=64 arch=sm_80
// arg: x f32[2,5,256]=random
// arg: out f32[2,64]=zeros
// arg: n i32=5
// result: out = x.reshape(2, 5, 4, 64).sum((1, 2))
// bug 1: missing-wait tail: commits only where a copy was made, wait_group 1 always
// bug 2: clean commits of empty groups in the tail
// bug 3: missing-wait|data-race no barrier at the end of the round, stage refilled that others read
// bug 4: missing-wait wait_group 2
// bug 5: missing-wait prologue commits both stages as one group
// bug 6: clean wait_group 0 in the tail
// bug 7: missing-wait zfill copies are not in the group: committed before them
// bug 8: missing-wait the tail's wait_group 0 is missing behind the loop
#include "../hopper.cuh"
template <int N> INLINE void pending() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
INLINE void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
INLINE void copy_ca(void* to, const void* from, int bytes) {
    asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 4, %2;" ::"r"(shared(to)), "l"(__cvta_generic_to_global(from)), "r"(bytes) : "memory");
}
extern "C" __global__ void __launch_bounds__(64) kernel(const float* x, float* out, int n) {
    __shared__ alignas(16) float ring[3][256];
    __shared__ float tail[64];
    const int t = threadIdx.x;
    const float* mine = x + blockIdx.x * n * 256;
    auto load = [&](int k) { copy16(&ring[k % 3][t * 4], mine + k * 256 + t * 4); };
    load(0);
#if BUG != 5
    commit();
#endif
    load(1);
    commit();
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < n; k++) {
#if BUG == 4
        pending<2>();
#elif BUG == 6
        if (k == n - 1) pending<0>();
        else pending<1>();
#else
        pending<1>();
#endif
#if BUG == 3
        if (k == 0)
#endif
        __syncthreads();
#if BUG == 1 || BUG == 6
        if (k + 2 < n) load(k + 2), commit();
#else
        if (k + 2 < n) load(k + 2);
        commit();
#endif
        for (int i = 0; i < 4; i++) sum += ring[k % 3][i * 64 + (63 - t)];
    }
#if BUG == 7
    commit();
    copy_ca(&tail[t], mine + t, 0);
#else
    copy_ca(&tail[t], mine + t, t < 32 ? 0 : 0);
    commit();
#endif
#if BUG == 7
    pending<0>();
    commit();
#elif BUG != 8
    pending<0>();
#endif
    __syncthreads();
    // Sums of thread t are of column 63 - t.
    out[blockIdx.x * 64 + 63 - t] = sum + tail[63 - t];
}
