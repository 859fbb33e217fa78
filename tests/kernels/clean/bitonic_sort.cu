// Half of the threads exchange two elements each, at distances that change with every barrier.
// launch: grid=1 block=64
// arg: x i32[128]=random
// arg: out i32[128]=zeros
// result: out = np.sort(x)
extern "C" __global__ void kernel(const int* x, int* out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = x[t];
    s[t + 64] = x[t + 64];
    for (int size = 2; size <= 128; size *= 2) {
        for (int d = size / 2; d > 0; d /= 2) {
            __syncthreads();
            int i = 2 * t - t % d, j = i + d;
            int low = s[i], high = s[j];
            if (low > high == ((i & size) == 0)) {
                s[i] = high;
                s[j] = low;
            }
        }
    }
    __syncthreads();
    out[t] = s[t];
    out[t + 64] = s[t + 64];
}
