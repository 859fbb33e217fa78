// Rows of an embedding by tile::gather4, doubled, and written to other rows by tile::scatter4.
// launch: grid=1 block=128 arch=sm_100a
// arg: x tma:f32[32,64]=random,box=1x64
// arg: y tma:f32[32,64]=zeros,box=1x64
// arg: rows i32[4]=zeros
// arg: out f32[256]=zeros
// bug 1: deadlock|barrier-misuse the bytes of one row are expected
// bug 2: missing-wait no wait for the gather
// bug 3: missing-proxy-fence no fence before the scatter
// bug 4: data-race|missing-proxy-fence no barrier before the scatter
// bug 5: missing-wait the tile is overwritten before the scatter has read it
// bug 6: clean wait_group.read before the tile is overwritten
// bug 7: missing-wait|global-race two gathers into one tile: the second before the first was used
// bug 8: barrier-misuse|missing-wait|deadlock a wait with the other parity
#include "../hopper.cuh"
INLINE void gather4(void* to, const TensorMap& map, int x, int a, int b, int c, int d, u64& barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5, %6}], [%7];"
                 ::"r"(shared(to)), "l"(&map), "r"(x), "r"(a), "r"(b), "r"(c), "r"(d), "r"(shared(&barrier)) : "memory");
}
INLINE void scatter4(const TensorMap& map, int x, int a, int b, int c, int d, const void* from) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%0, {%1, %2, %3, %4, %5}], [%6];"
                 ::"l"(&map), "r"(x), "r"(a), "r"(b), "r"(c), "r"(d), "r"(shared(from)) : "memory");
}
extern "C" __global__ void __launch_bounds__(128) kernel(const __grid_constant__ TensorMap x, const __grid_constant__ TensorMap y, const int* rows, float* out) {
    __shared__ alignas(128) float tile[256];
    __shared__ alignas(8) u64 full;
    const u32 t = threadIdx.x;
    if (t == 0) {
        init(full, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (t == 0) {
        expect(full, BUG == 1 ? 256 : BUG == 7 ? 2048 : 1024);
        gather4(tile, x, 0, rows[0] + 3, rows[1] + 9, rows[2] + 1, rows[3] + 30, full);
#if BUG == 7
        gather4(tile, x, 0, rows[0] + 4, rows[1] + 8, rows[2] + 2, rows[3] + 31, full);
#endif
    }
#if BUG == 8
    wait(full, 1);
#elif BUG != 2
    wait(full, 0);
#endif
    tile[t] *= 2, tile[t + 128] *= 2;
#if BUG != 3
    fence_async_shared();
#endif
#if BUG != 4
    __syncthreads();
#endif
    if (t == 0) {
        scatter4(y, 0, 1, 7, 8, 20, tile), bulk_commit();
#if BUG == 6
        bulk_wait_read<0>();
#endif
    }
#if BUG == 5 || BUG == 6
    __syncthreads();
    tile[t] = 0;
#endif
    if (t == 0) bulk_wait<0>();
    out[t] = rows[t & 3];
}
