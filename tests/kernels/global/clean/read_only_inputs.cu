// Every CTA reads the same inputs with .nc, and writes bytes of its own.
//
// launch: grid=8 block=64
// arg:    table f32[64]=arange
// arg:    out f32[512]=zeros
// result: out = np.tile(np.arange(64) * 2, 8).astype(np.float32)
extern "C" __global__ void kernel(const float* __restrict__ table, float* __restrict__ out) {
    out[blockIdx.x * 64 + threadIdx.x] = 2 * table[threadIdx.x];
}
