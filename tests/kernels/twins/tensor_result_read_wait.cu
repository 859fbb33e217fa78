// Tiles that tensor stores have written are used by other threads after only wait_group.read: one thread reads the last element of one tile,
// others store to the part of a second tile that lies inside of the tensor, whose address is in the first word of the map (R-B3).
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[256]=arange
// arg: out tma:f32[32,48]=zeros,box=16x16
// arg: copy f32[1]=zeros
// expect: missing-wait @first @load severity=error
// expect: missing-wait @second @write severity=error
// result: copy = np.full(1, 255, np.float32)
// result: out = np.block([[np.zeros((8, 48))], [np.zeros((16, 16)), np.arange(256).reshape(16, 16), np.zeros((16, 16))], [np.zeros((8, 48))]]).astype(np.float32) + np.pad(np.arange(128).reshape(8, 16)[:, :8], ((24, 0), (40, 0))) - np.pad(np.full((1, 8), 112 + np.arange(8)), ((31, 0), (40, 0)))
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, const __grid_constant__ TensorMap out, float* copy) {
    __shared__ alignas(128) float tile[256];
    float* result = (float*)out.words[0];
    u32 t = threadIdx.x;
    for (u32 i = t; i < 256; i += 64) tile[i] = x[i];
    fence_async_shared();
    __syncthreads();
    if (t == 0) {
        tensor_store(out, 16, 8, tile); /*@first*/
        bulk_commit();
        tensor_store(out, 40, 24, tile); /*@second*/
        bulk_commit();
#ifdef RACY
        bulk_wait_read<0>();
#else
        bulk_wait<0>();
#endif
    }
    __syncthreads();
    if (t == 32) copy[0] = result[23 * 48 + 31]; /*@load*/
    if (t < 8) result[31 * 48 + 40 + t] = 0.0f; /*@write*/
}
