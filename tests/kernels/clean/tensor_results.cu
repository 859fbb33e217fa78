// Legal uses of a tensor while tensor stores to it are in flight: elements to the left and right of a tile, above and below it, what a tile at
// the edge does not reach, every other sheet of a tensor of three dimensions. And of the tiles themselves, after the full wait.
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[256]=arange
// arg: out tma:f32[32,48]=zeros,box=16x16
// arg: cube tma:f32[4,4,16]=zeros,box=3x2x16,element_strides=2x1x1
// arg: sum f32[4]=zeros
// result: sum = np.array([0, 0, 255, 47], np.float32)
#include "../hopper.cuh"
INLINE void cube_store(const TensorMap& map, int x, int y, int z, const void* from) {
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];"
                 ::"l"(&map), "r"(x), "r"(y), "r"(z), "r"(shared(from)) : "memory");
}
extern "C" __global__ void kernel(const float* x, const __grid_constant__ TensorMap out, const __grid_constant__ TensorMap cube, float* sum) {
    __shared__ alignas(128) float tile[256];
    float *result = (float*)out.words[0], *sheets = (float*)cube.words[0];
    u32 t = threadIdx.x;
    for (u32 i = t; i < 256; i += 64) tile[i] = x[i];
    fence_async_shared();
    __syncthreads();
    if (t == 0) {
        tensor_store(out, 16, 8, tile);
        tensor_store(out, 40, 24, tile);
        cube_store(cube, 0, 1, 0, tile);
        bulk_commit();
        bulk_wait_read<0>();
    }
    __syncthreads();
    float seen = 0;
    for (u32 row = t; row < 32; row += 64) {
        seen += result[row * 48 + 15] + result[row * 48 + 32];
        if (row < 8 || row >= 24) seen += result[row * 48 + 16];
        if (row < 24) seen += result[row * 48 + 40];
    }
    if (t == 63) sum[0] = seen;
    if (t < 16) {
        for (u32 y = 0; y < 4; y++) seen += sheets[(1 * 4 + y) * 16 + t] + sheets[(3 * 4 + y) * 16 + t];
        seen += sheets[t] + sheets[3 * 16 + t];
        if (t == 3) sum[1] = seen;
    }
    if (t == 0) bulk_wait<0>();
    __syncthreads();
    if (t == 32) sum[2] = result[23 * 48 + 31];
    if (t == 33) sum[3] = sheets[(2 * 4 + 1) * 16 + 15];
}
