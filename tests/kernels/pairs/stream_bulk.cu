// Persistent streaming scale: ring of input stages by TMA bulk loads, ring of 2 output stages by bulk stores, tiles by an atomic counter.
// launch: grid=3 block=128 arch=sm_90
// arg: x f32[16,256]=arange
// arg: y f32[16,256]=zeros
// arg: counter u32[1]=zeros
// result: y = x * 2
// bug 1: missing-wait output stage rewritten: wait_group.read 2 in place of 1
// bug 2: missing-wait|data-race no barrier after wait_group.read
// bug 3: missing-proxy-fence no fence
// bug 4: data-race|missing-wait no barrier between the writes and the store
// bug 6: lifetime warn no wait at the end at all
// bug 7: missing-wait wrong parity: never flips
// bug 8: missing-proxy-fence fence only by thread 0 before the barrier
// bug 9: clean fence by all, after the barrier too
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* y, u32* counter) {
    __shared__ alignas(128) float in[256], out[2][256];
    __shared__ alignas(8) u64 full;
    __shared__ u32 next;
    const u32 t = threadIdx.x;
    if (t == 0) init(full, 1), fence_async_shared();
    __syncthreads();
    u32 phase = 0;
#pragma unroll 1
    for (int n = 0;; n++) {
        if (t == 0) {
            u32 tile = atomicAdd(counter, 1u);
            next = tile;
            if (tile < 16) expect(full, 1024), bulk_load(in, x + tile * 256, 1024, full);
        }
        __syncthreads();
        u32 tile = next;
        if (tile >= 16) break;
        wait(full, phase);
#if BUG != 7
        phase ^= 1;
#endif
        // The stage of the round before the last must have been read.
#if BUG == 1
        if (t == 0) bulk_wait_read<2>();
#else
        if (t == 0) bulk_wait_read<1>();
#endif
#if BUG != 2
        __syncthreads();
#endif
        float* stage = out[n & 1];
        for (u32 i = t; i < 256; i += 128) stage[i] = in[i] * 2.f;
#if BUG == 8
        if (t == 0) fence_async_shared();
#elif BUG != 3
        fence_async_shared();
#endif
#if BUG != 4
        __syncthreads();
#endif
#if BUG == 9
        fence_async_shared();
#endif
        if (t == 0) bulk_store(y + tile * 256, stage, 1024), bulk_commit();
    }
#if BUG != 6
    if (t == 0) bulk_wait<0>();
#endif
}
