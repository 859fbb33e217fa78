// Shuffles of a warp with 13 lanes, 3 of them without an element. What they take from lanes that are not there is undefined
// (9.7.9.6), and each of these reductions throws it away: by a limit, a choice, a branch, a product with zero, a mask.
// launch: grid=1 block=45
// arg: x i32[45]=arange
// arg: out i32[10]=zeros
// arg: n i32=42
// result: out = np.array([x[:32].sum(), x[32:42].sum()] * 5)
extern "C" __global__ void kernel(const int* x, int* out, int n) {
    int t = threadIdx.x, lane = t & 31, left = n - (t - lane) < 32 ? n - (t - lane) : 32;
    if (t >= n) return;
    const int mine = x[t];
    int a = mine, b = mine, c = mine, d = mine, e = mine;
    for (int o = 16; o; o >>= 1) {
        int got, in;
        asm volatile("{ .reg .pred p; shfl.sync.down.b32 %0|p, %2, %3, %4, -1; selp.b32 %1, 1, 0, p; }"
                     : "=r"(got), "=r"(in) : "r"(a), "r"(o), "r"(left - 1));
        if (in) a += got;
        got = __shfl_down_sync(0xffffffff, b, o);
        b += lane + o < left ? got : 0;
        got = __shfl_down_sync(0xffffffff, c, o);
        if (lane + o < left) c += got;
        d += (lane + o < left) * __shfl_down_sync(0xffffffff, d, o);
        e += -(lane + o < left) & __shfl_down_sync(0xffffffff, e, o);
    }
    if (lane == 0) {
        int* at = out + t / 32;
        at[0] = a, at[2] = b, at[4] = c, at[6] = d, at[8] = e;
    }
}
