// The reducing barriers are barriers: accesses on their two sides are ordered.
// launch: grid=1 block=64
// arg: x i32[64]=arange
// arg: out i32[64]=zeros
// result: out = 10000 * (x % 3 == 0).sum() + 100 * x[::-1] + 11
extern "C" __global__ void kernel(const int* x, int* out) {
    __shared__ int tile[64];
    int t = threadIdx.x;
    tile[t] = x[t];
    int count = __syncthreads_count(x[t] % 3 == 0);
    int other = tile[63 - t];
    int all = __syncthreads_and(x[t] >= 0);
    tile[t] = other;
    int any = __syncthreads_or(x[t] == 5);
    out[t] = 10000 * count + 100 * x[tile[t]] + 10 * any + all;
}
