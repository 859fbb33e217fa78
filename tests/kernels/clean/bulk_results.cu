// Legal uses of global memory beside bulk stores: the source is used again after wait_group.read; bytes just beside a result are read and
// stored while it is in flight; a result is read after the full wait, by the issuer, by its warp and by all threads; a wait that leaves a
// younger group in flight covers the older one; reductions of both kinds meet; of many stores the first is read after the last wait.
// launch: grid=2 block=64 arch=sm_90a
// arg: x f32[64]=arange
// arg: out f32[2,96]=zeros
// arg: many f32[2,800]=zeros
// arg: copy f32[2,64]=zeros
// arg: marks f32[2,4]=zeros
// result: out = np.tile(np.concatenate([np.arange(64) + 1, np.full(32, 5)]), (2, 1)).astype(np.float32)
// result: copy = np.tile(np.arange(64), (2, 1)).astype(np.float32)
// result: marks = np.tile([6, 7, 5, 3], (2, 1)).astype(np.float32)
// result: many = np.tile(np.arange(4), (2, 200)).astype(np.float32)
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out, float* many, float* copy, float* marks) {
    __shared__ alignas(128) float tile[64];
    __shared__ alignas(128) float ones[64];
    u32 t = threadIdx.x;
    out += 96 * blockIdx.x; many += 800 * blockIdx.x; copy += 64 * blockIdx.x; marks += 4 * blockIdx.x;
    tile[t] = x[t];
    ones[t] = 1.0f;
    fence_async_shared();
    __syncthreads();
    if (t == 0) {
        bulk_store(out, tile, 32 * sizeof(float));
        bulk_commit();
        bulk_store(out + 32, tile + 32, 32 * sizeof(float));
        bulk_commit();
        bulk_wait<1>();
        marks[0] = out[6];
        bulk_wait<0>();
    }
    __syncwarp();
    if (t == 1) marks[1] = out[7];
    __syncthreads();
    copy[t] = out[t];
    __syncthreads();
    if (t == 32) {
        bulk_add(out, ones, sizeof(ones));
        bulk_commit();
        bulk_wait_read<0>();
    }
    __syncthreads();
    ones[t] = 2.0f;
    if (t < 32) out[64 + t] = 5.0f;
    else if (t == 33) atomicAdd(out + 63, 0.0f);
    if (t == 0) marks[2] = out[64];
    __syncthreads();
    if (t == 2) {
        for (u32 i = 0; i < 200; i++) {
            bulk_store(many + 4 * i, tile, 16);
            bulk_commit();
            bulk_wait_read<0>();
        }
        bulk_wait<0>();
    }
    __syncthreads();
    if (t == 63) marks[3] = many[3];
}
