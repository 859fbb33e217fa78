// A ring of three stages filled by TMA and read by wgmma, two products in flight, and an epilogue that leaves by TMA over tiles; the
// stages of the next tile come in meanwhile.
// launch: grid=2 block=160 arch=sm_90a
// arg: a tma:f16[64,64]=random,box=64x8
// arg: b tma:f16[32,64]=random,box=8x8
// arg: out tma:f32[64,32]=zeros,box=64x8
// result: out = a.astype(np.float32) @ b.astype(np.float32).T
#include "../hopper.cuh"
enum { STAGES = 3, STEPS = 4, TILES = 4 };
extern "C" __global__ void kernel(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const __grid_constant__ TensorMap out) {
    __shared__ alignas(128) f16 left[STAGES][64 * 16], right[STAGES][8 * 16];
    __shared__ alignas(128) float result[64 * 8];
    __shared__ u64 full[STAGES], empty[STAGES];
    int t = threadIdx.x;
    if (t == 0) {
        for (int s = 0; s < STAGES; s++) {
            init(full[s], 1);
            init(empty[s], 4);
        }
    }
    __syncthreads();
    int s = 0;
    u32 phase = 0;
    if (t == 128) {
#pragma unroll 1
        for (int tile = blockIdx.x; tile < TILES; tile += gridDim.x) {
#pragma unroll 1
            for (int k = 0; k < STEPS; k++) {
                wait(empty[s], phase ^ 1);
                expect(full[s], A_BYTES + B_BYTES);
                for (int half = 0; half < 2; half++) {  // 8 columns at a time: with a leading distance of 1024 bytes for A, 128 for B
                    tensor_load(left[s] + half * 512, a, k * 16 + half * 8, 0, full[s]);
                    tensor_load(right[s] + half * 64, b, k * 16 + half * 8, tile * 8, full[s]);
                }
                if (++s == STAGES) s = 0, phase ^= 1;
            }
        }
    } else if (t < 128) {
#pragma unroll 1
        for (int tile = blockIdx.x; tile < TILES; tile += gridDim.x) {
            float d[4];
            int before = -1;
#pragma unroll 1
            for (int k = 0; k < STEPS; k++) {
                wait(full[s], phase);
                wgmma_fence();
                multiply(d, descriptor(shared(left[s]), 1024, 128, 0), descriptor(shared(right[s]), 128, 128, 0), k);
                wgmma_commit();
                wgmma_wait<1>();
                if (before >= 0 && t % 32 == 0) arrive(empty[before]);
                before = s;
                if (++s == STAGES) s = 0, phase ^= 1;
            }
            wgmma_wait<0>();
            if (t % 32 == 0) arrive(empty[before]);
            if (t == 0) bulk_wait_read<0>();
            asm volatile("bar.sync 1, 128;" ::: "memory");
            write_result(result, d);
            fence_async_shared();
            asm volatile("bar.sync 1, 128;" ::: "memory");
            if (t == 0) {
                tensor_store(out, tile * 8, 0, result);
                bulk_commit();
            }
        }
        if (t == 0) bulk_wait<0>();
    }
}
