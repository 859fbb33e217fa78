// Copies of 4, 8 and 16 bytes into neighbouring places, waited for together.
// launch: grid=1 block=32
// arg: x u32[256]=arange
// arg: out u32[256]=zeros
// result: out = np.where(np.arange(256) % 8 == 0, 7, x)
#define CP_ASYNC(to, from, bytes) \
    asm volatile("cp.async.ca.shared.global [%0], [%1], " bytes ";" \
                 :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(__cvta_generic_to_global(from)) : "memory")
extern "C" __global__ void kernel(const unsigned* x, unsigned* out) {
    __shared__ __align__(16) unsigned tile[256];
    int t = threadIdx.x;
    tile[8 * t] = 7;
    CP_ASYNC(&tile[8 * t + 1], &x[8 * t + 1], "4");
    CP_ASYNC(&tile[8 * t + 2], &x[8 * t + 2], "8");
    CP_ASYNC(&tile[8 * t + 4], &x[8 * t + 4], "16");
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncwarp();
    for (int k = 0; k < 8; k++) out[k * 32 + t] = tile[k * 32 + t];
}
