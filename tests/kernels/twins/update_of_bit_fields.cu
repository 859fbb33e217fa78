// Two warps store different bit-fields of one word. In branches that exclude each other, the compiler makes one load and one store of it.
// launch: grid=1 block=64
// arg: out u32[64]=zeros
// expect: data-race WAR @b @b severity=error
// allow: data-race WAW @b @b
// allow: data-race RAW @b @b
// result: out = np.arange(64) % 32 + np.arange(64) // 32
struct Fields {
#ifdef RACY
    unsigned a : 12, b : 20;
#else
    unsigned a, b;
#endif
};
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ Fields fields[32];
    int t = threadIdx.x, i = t & 31;
    if (t < 32) fields[i].a = 0, fields[i].b = 0;
    __syncthreads();
    if (t < 32)
        fields[i].a = i;
    else
        fields[i].b = i + 1;  /*@b*/
    __syncthreads();
    out[t] = t < 32 ? fields[i].a : fields[i].b;
}
