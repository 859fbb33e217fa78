// Two warps write bit-fields of one word, in two branches. The compiler stores each as the byte that it is. A barrier in one branch hangs.
// launch:   grid=1 block=64
// arg:      out u32[32]=zeros
// expect:   data-race @low @high
// allow:    data-race
// result:   out = np.arange(32, dtype=np.uint32) * 257 + 8193
struct Fields {
#ifdef RACY
    unsigned short low : 8, high : 8;
#else
    unsigned char low, high;
#endif
};
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ Fields fields[32];
    int t = threadIdx.x, i = t % 32;
    if (t < 32) reinterpret_cast<unsigned short*>(fields)[i] = 0;
    __syncthreads();
    if (t < 32) fields[i].low = t + 1; /*@low*/
    else fields[i].high = t; /*@high*/
    __syncthreads();
    if (t < 32) out[t] = fields[t].low + fields[t].high * 256;
}
