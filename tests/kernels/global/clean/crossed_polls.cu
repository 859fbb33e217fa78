// Two CTAs raise flags of their own and wait for each other's, without fence.sc: a load of the old value is repeated, so stores that cross do no harm.
// launch: grid=2 block=32
// arg:    flags u32[64]=zeros
// arg:    out f32[2]=zeros
// result: out = np.float32([1, 1])
extern "C" __global__ void kernel(volatile unsigned* flags, float* out) {
    if (threadIdx.x) return;
    flags[blockIdx.x * 32] = 1;
    while (flags[(blockIdx.x ^ 1) * 32] == 0) {}
    out[blockIdx.x] = 1;
}
