// The old style of a warp's last steps: volatile accesses are strong (PTX ISA, "Moral strength"), hence no data race.
// The steps differ in distance and each lane's own word is its own, so that lockstep alone gives the result.
// launch: grid=1 block=32
// arg: x f32[32]=arange
// arg: out f32[1]=zeros
// result: out = x.sum().reshape(1)
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float s[64];
    volatile float* v = s;
    int t = threadIdx.x;
    v[t] = x[t];
    v[t + 32] = 0.0f;
    __syncwarp();
    v[t] += v[t + 16];
    v[t] += v[t + 8];
    v[t] += v[t + 4];
    v[t] += v[t + 2];
    v[t] += v[t + 1];
    if (t == 0) out[0] = v[0];
}
