// The two halves of a warp take different paths and meet only among themselves.
// launch: grid=1 block=32
// arg: x i32[32]=arange
// arg: out i32[32]=zeros
// result: out = np.concatenate([x[:16][::-1], -x[16:][::-1]])
extern "C" __global__ void kernel(const int* x, int* out) {
    __shared__ int s[32];
    int t = threadIdx.x;
    if (t < 16) {
        s[t] = x[t];
        __syncwarp(0x0000ffffu);
        out[t] = s[15 - t];
    } else {
        s[t] = -x[t];
        __syncwarp(0xffff0000u);
        out[t] = s[47 - t];
    }
}
