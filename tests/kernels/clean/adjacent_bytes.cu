// Four warps store the four bytes of every word: neighbours, not rivals.
// launch: grid=1 block=128
// arg: x u8[128]=arange
// arg: out u8[128]=zeros
// result: out = x[::-1]
extern "C" __global__ void kernel(const unsigned char* x, unsigned char* out) {
    __shared__ unsigned char s[128];
    int t = threadIdx.x, mine = t % 32 * 4 + t / 32;
    s[mine] = x[mine];
    __syncthreads();
    out[t] = s[127 - t];
}
