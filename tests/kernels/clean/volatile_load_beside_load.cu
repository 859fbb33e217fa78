// Whoever raised a counter last reads it back, plainly, while another warp polls it by volatile loads: two loads are no race.
// launch: grid=1 block=64
// arg: out i32[2]=zeros
// result: out = np.array([1, 1])
extern "C" __global__ void kernel(int* out) {
    __shared__ int count;
    int t = threadIdx.x, seen = 0, own;
    if (t == 0) count = 0;
    __syncthreads();
    if (t == 32) seen = *(volatile int*)&count >= 0;
    if (t == 0) {
        atomicAdd(&count, 1);
        for (int i = 0; i < 8; ++i) asm volatile("ld.shared.s32 %0, [%1];" : "=r"(own) : "r"((unsigned)__cvta_generic_to_shared(&count)) : "memory");
        out[0] = own;
    }
    if (t == 32) out[1] = seen;
}
