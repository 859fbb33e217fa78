// Two CTAs exchange two bytes of one word, each behind a flag of its own: both bytes have two users, and no two stores meet.
//
// launch: grid=2 block=32
// arg:    bytes u8[4]=zeros
// arg:    flags u32[2]=zeros
// arg:    out u32[2]=zeros
// result: out = np.uint32([2, 1])
extern "C" __global__ void kernel(unsigned char* bytes, unsigned* flags, unsigned* out) {
    if (threadIdx.x) return;
    int own = blockIdx.x, other = 1 - own;
    bytes[own] = own + 1;
    asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flags + own) : "memory");
    unsigned seen = 0;
    while (!seen) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flags + other) : "memory");
    out[own] = bytes[other];
}
