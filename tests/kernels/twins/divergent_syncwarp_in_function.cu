// Half of a warp skips a __syncwarp() of a function that is not inlined, comes back and goes on; in the second of three calls only. In the
// third one the others wait for no lane, since these have exited, whatever they did in earlier calls.
// launch: grid=1 block=64
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: barrier-misuse @barrier @behind severity=error
// result: out = np.where(np.arange(64) % 32 < 16, 3, 2) * x.reshape(32, 2)[:, ::-1].reshape(64)
__device__ __noinline__ float neighbour(float* s, int t, int lanes) {
    if ((t & 31) < lanes) __syncwarp();  /*@barrier*/
    return s[t ^ 1];
}
#ifdef RACY
#define LANES 16
#else
#define LANES 32
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float s[64];
    int t = threadIdx.x, all = (int)x[32], some = (int)x[LANES];
    s[t] = x[t];
    __syncthreads();
    float first = neighbour(s, t, all);
    out[t] = first + neighbour(s, t, some);  /*@behind*/
    if ((t & 31) >= 16) return;
    out[t] += neighbour(s, t, all);
}
