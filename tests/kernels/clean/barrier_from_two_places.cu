// Whole warps reach the aligned barrier 0 at different instructions: legal, and one barrier.
// launch: grid=1 block=128
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// result: out = np.concatenate([-x[64:][::-1], x[:64][::-1]])
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[128];
    int t = threadIdx.x;
    if (t < 64) {
        tile[t] = x[t];
        asm volatile("bar.sync 0; // here" ::: "memory");
    } else {
        tile[t] = -x[t];
        asm volatile("bar.sync 0; // and there" ::: "memory");
    }
    out[t] = tile[127 - t];
}
