// The copy is issued, and may be complete, before its bytes are announced: legal while an arrival is pending (SEMANTICS 6).
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[256]=arange
// arg: out f32[64]=zeros
// result: out = x.reshape(4, 64)[:, ::-1].sum(axis=0)
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full;
    __shared__ __align__(128) float tile[64];
    int t = threadIdx.x;
    float sum = 0;
    if (t == 0) INIT(&full, 1);
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < 4; k++) {
        if (t == 0) {
            BULK_LOAD(tile, x + 64 * k, sizeof tile, &full);
            u32 early = 0;
            for (int i = 0; i < 20; i++) ATTEMPT(early, "test_wait.parity", &full, "r", (u32)(k & 1));
            if (early) asm volatile("trap;");
            ARRIVE_EXPECT(&full, sizeof tile);
        }
        WAIT(&full, k & 1);
        sum += tile[63 - t];
        __syncthreads();
    }
    out[t] = sum;
}
