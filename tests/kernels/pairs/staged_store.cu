// A kernel whose epilogue stages results in the operands' shared memory, and stores them by cp.async.bulk, one row for each thread of a warp.
// launch: grid=2 block=128 arch=sm_90
// arg: x f32[2,4,1024]=random
// arg: y f32[2,4,1024]=zeros
// result: y = x * 2
// bug 1: missing-wait wait_group.read by thread 0 only: the other issuers' stores still read
// bug 2: missing-wait wait_group.read 1
// bug 3: missing-proxy-fence the fence is executed by the issuing warp before the barrier, not by the writers
// bug 4: data-race|missing-proxy-fence|missing-wait no barrier between the writes and the stores
// bug 5: clean the fence behind the barrier, by the issuing lanes
// bug 6: missing-wait no commit in the loop
// bug 7: data-race|missing-wait no barrier between the wait and the next writes
// bug 8: lifetime no wait for any group
// bug 9: clean wait_group in place of wait_group.read
// bug 10: clean __syncwarp where the issuing lane stores what its own warp wrote
#include "../hopper.cuh"
extern "C" __global__ void __launch_bounds__(128) kernel(const float* x, float* y) {
    __shared__ alignas(128) float stage[1024];
    const u32 t = threadIdx.x;
#pragma unroll 1
    for (u32 k = 0; k < 4; k++) {
        const float* in = x + (blockIdx.x * 4 + k) * 1024;
        float* to = y + (blockIdx.x * 4 + k) * 1024;
#if BUG == 10
        for (u32 i = 0; i < 8; i++) stage[t / 32 * 256 + i * 32 + t % 32] = in[t / 32 * 256 + i * 32 + t % 32] * 2;
        fence_async_shared();
        __syncwarp();
        if (t % 32 == 0) {
            bulk_store(to + t / 32 * 256, stage + t / 32 * 256, 1024);
            bulk_commit(), bulk_wait_read<0>();
        }
        __syncwarp();
        continue;
#endif
        for (u32 i = t; i < 1024; i += 128) stage[i] = in[i] * 2;
#if BUG == 3
        if (t < 32) fence_async_shared();
#elif BUG != 5
        fence_async_shared();
#endif
#if BUG != 4
        __syncthreads();
#endif
        if (t < 32) {
#if BUG == 5
            fence_async_shared();
#endif
            bulk_store(to + t * 32, stage + t * 32, 128);
#if BUG != 6
            bulk_commit();
#endif
#if BUG == 1
            if (t == 0) bulk_wait_read<0>();
#elif BUG == 2
            bulk_wait_read<1>();
#elif BUG == 9
            bulk_wait<0>();
#elif BUG != 8
            bulk_wait_read<0>();
#endif
        }
#if BUG != 7
        __syncthreads();
#endif
#if BUG == 8
        return;
#endif
    }
#if BUG == 6
    if (t < 32) bulk_commit(), bulk_wait_read<0>();
#endif
}
