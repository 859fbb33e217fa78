// A loop stores four matrices by stmatrix, each time one matrix further: row r of every matrix is stored and read by the same four lanes, whichever
// lane gives its address. That is program order (R-ROW).
// launch: grid=1 block=32 arch=sm_90
// arg: out u32[4,32]=zeros
// result: out = np.arange(32) + np.arange(4)[:, None]
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ __align__(16) unsigned words[7 * 32];
    unsigned t = threadIdx.x;
#pragma unroll 1
    for (unsigned s = 0; s < 4; s++) {
        unsigned at = (unsigned)__cvta_generic_to_shared(words + s * 32 + 4 * t), r = t + s;
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" :: "r"(at), "r"(r), "r"(r + 32), "r"(r + 64), "r"(r + 96) : "memory");
        out[s * 32 + t] = words[s * 32 + t];
    }
}
