// __syncwarp() in a branch, with a mask that names the lanes of the other one too. Undefined: no chip runs it.
// backends: cpu
// launch: grid=1 block=64
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: barrier-misuse @point severity=error
// result: out = np.where(np.arange(64) % 32 < 16, x.reshape(-1, 2)[:, ::-1].reshape(-1), x)
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    if (t % 32 < 16) {
        tile[t] = x[t];
#ifdef RACY
        __syncwarp();  /*@point*/
#else
        __syncwarp(0xffff);
#endif
        out[t] = tile[t ^ 1];
    } else {
        out[t] = x[t];
    }
    if (t < 0) tile[t] = 0;
}
