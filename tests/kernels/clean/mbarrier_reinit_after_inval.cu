// One object's storage in three lives: a barrier of 64, after inval data, after that a barrier of two.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// result: out = 2 * x + 5
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ union { u64 barrier; float words[2]; } both;
    __shared__ float tile[64];
    int t = threadIdx.x;
    if (t == 0) INIT(&both.barrier, 64);
    __syncthreads();
    tile[t] = x[t];
    ARRIVE(&both.barrier);
    WAIT(&both.barrier, 0);
    float value = tile[63 - t];
    __syncthreads();
    if (t == 0) {
        INVAL(&both.barrier);
        ((volatile float*)both.words)[1] = 5.0f;
    }
    __syncthreads();
    float more = ((volatile float*)both.words)[1];
    __syncthreads();
    if (t == 0) INIT(&both.barrier, 2);
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < 3; k++) {
        tile[t] = 2 * value;
        __syncwarp();
        if (t % 32 == 0) ARRIVE(&both.barrier);
        WAIT(&both.barrier, k & 1);
        if (k == 2) out[t] = tile[63 - t] + more;
        __syncthreads();
    }
}
