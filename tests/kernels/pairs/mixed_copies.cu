// Attention-like prologue: Q by cp.async, K by TMA, mask by ordinary stores, in one buffer that the epilogue uses again.
// launch: grid=2 block=128 arch=sm_90
// arg: q f32[2,128]=random
// arg: k f32[2,4,128]=random
// arg: out f32[2,128]=zeros
// result: out = q * k.sum(1) + 1
// bug 1: missing-wait cp.async of Q is not waited for
// bug 2: clean the wait is behind the first barrier: those of the loop serve
// bug 3: missing-wait K: full waited by thread 0 alone, then __syncwarp
// bug 4: clean K: full waited by thread 0, then __syncthreads
// bug 5: missing-proxy-fence|clean epilogue over K's stage, TMA store without a fence
// bug 6: missing-wait K's next load is issued into the stage in use
// bug 7: missing-wait|data-race thread 0 refills K before the barrier
// bug 8: missing-wait cp.async.wait_group 1 with one group
// bug 9: clean a named barrier of all threads in place of __syncthreads
// bug 10: clean wait_all in place of groups
// bug 11: missing-wait epilogue over Q's stage when the copy is in flight (never read)
#include "../hopper.cuh"
extern "C" __global__ void __launch_bounds__(128) kernel(const float* q, const float* k, float* out) {
    __shared__ alignas(128) float Q[128], K[2][128], mask[128];
    __shared__ alignas(8) u64 full[2];
    const u32 t = threadIdx.x;
    if (t == 0) init(full[0], 1), init(full[1], 1), fence_async_shared();
    if (t < 32) copy16(&Q[t * 4], q + blockIdx.x * 128 + t * 4);
    asm volatile("cp.async.commit_group;" ::: "memory");
    mask[127 - t] = 1;
#if BUG == 1 || BUG == 11
#elif BUG == 8
    asm volatile("cp.async.wait_group 1;" ::: "memory");
#elif BUG == 10
    asm volatile("cp.async.wait_all;" ::: "memory");
#elif BUG != 2
    asm volatile("cp.async.wait_group 0;" ::: "memory");
#endif
#if BUG != 9
    __syncthreads();
#else
    asm volatile("bar.sync 1, 128;" ::: "memory");
#endif
#if BUG == 2
    asm volatile("cp.async.wait_group 0;" ::: "memory");
#endif
    const float* mine = k + blockIdx.x * 512;
    if (t == 0)
        for (int s = 0; s < 2; s++) expect(full[s], 512), bulk_load(K[s], mine + s * 128, 512, full[s]);
    float sum = 0;
#pragma unroll 1
    for (int n = 0; n < 4; n++) {
        int s = n & 1;
#if BUG == 3
        if (t == 0) wait(full[s], n / 2);
        __syncwarp();
#elif BUG == 4
        if (t == 0) wait(full[s], n / 2);
        __syncthreads();
#else
        wait(full[s], n / 2);
#endif
#if BUG == 6
        if (t == 0 && n + 2 < 4) expect(full[s], 512), bulk_load(K[s], mine + (n + 2) * 128, 512, full[s]);
#endif
        sum += K[s][127 - t];
#if BUG != 7
        __syncthreads();
#endif
#if BUG != 6
        if (t == 0 && n + 2 < 4) expect(full[s], 512), bulk_load(K[s], mine + (n + 2) * 128, 512, full[s]);
#endif
    }
    // Column 127 - t.
    float r = BUG == 11 ? sum : Q[127 - t] * sum + mask[127 - t];
#if BUG == 11
    Q[t] = r;
    r = Q[t];
#endif
#if BUG == 5
    K[0][127 - t] = r;
    __syncthreads();
    if (t == 0) bulk_store(out + blockIdx.x * 128, K[0], 512), bulk_commit(), bulk_wait<0>();
#else
    out[blockIdx.x * 128 + 127 - t] = r;
#endif
}
