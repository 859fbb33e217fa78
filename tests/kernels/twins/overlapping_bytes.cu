// Warp 0 stores byte 1 of every word. Warp 1 stores a half word: bytes 2 and 3 are its own, bytes 0 and 1 are not.
// launch: grid=1 block=64
// arg: out u32[32]=zeros
// expect: data-race WAW @byte @half severity=error
// result: out = (np.arange(32) + 1 << 8) + (0x8000 + np.arange(32) << 16)
#ifdef RACY
#define HALF 0
#else
#define HALF 2
#endif
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ __align__(4) unsigned char s[128];
    int t = threadIdx.x, lane = t % 32;
    if (t < 32) ((unsigned*)s)[t] = 0;
    __syncthreads();
    if (t < 32) {
        s[4 * lane + 1] = lane + 1;  /*@byte*/
    } else {
        *(unsigned short*)(s + 4 * lane + HALF) = 0x8000 + lane;  /*@half*/
    }
    __syncthreads();
    if (t < 32) out[t] = ((unsigned*)s)[t];
}
