// One elected lane does the work of its warp, again and again.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// result: out = x
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    for (int i = 0; i < 3; ++i) {
        unsigned elected;
        asm volatile("{.reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p;}" : "=r"(elected) :: "memory");
        if (elected) for (int j = 0; j < 32; ++j) tile[t / 32 * 32 + j] = x[t / 32 * 32 + j] + i;
        __syncwarp();
        out[t] = tile[t] - i;
        __syncthreads();
    }
}
