// Four stages are loaded at once. The products of a loop are committed once, behind it, so the loop has nothing but waits and products: it works, and
// is no poll of an mbarrier.
// launch: grid=1 block=128 arch=sm_100a
// arg: x f16[4,2048]=random
// arg: y f16[4,1024]=random
// arg: out f32[128,64]=zeros
#include "../blackwell.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[4][2048], b[4][1024];
    __shared__ alignas(8) u64 full[4], done;
    __shared__ u32 base;
    const u32 t = threadIdx.x;
    if (t == 0) {
        for (int s = 0; s < 4; s++) init(full[s], 1);
        init(done, 1);
    }
    if (t < 32) alloc(base, COLUMNS);
    fence_before_sync();
    __syncthreads();
    fence_after_sync();
    if (t == 0) {
#pragma unroll 1
        for (int s = 0; s < 4; s++) {
            expect(full[s], 6144);
            bulk_load(a[s], x + s * 2048, 4096, full[s]);
            bulk_load(b[s], y + s * 1024, 2048, full[s]);
        }
#pragma unroll 1
        for (int s = 0; s < 4; s++) {
            wait(full[s], 0);
            fence_after_sync();
            multiply(base, a[s], b[s], s != 0);
        }
        commit_to(done);
    }
    __syncwarp();
    wait(done, 0);
    fence_after_sync();
    float v[8];
#pragma unroll 1
    for (u32 c = 0; c < COLUMNS; c += 8) {
        load(v, own_lanes(base) + c);
        wait_loads();
        put(out, c, v);
    }
    fence_before_sync();
    __syncthreads();
    fence_after_sync();
    if (t < 32) dealloc(base, COLUMNS);
}
