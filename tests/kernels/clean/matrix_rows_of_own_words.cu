// Each lane stores the words, or with .trans the halves of words, that ldmatrix gives it; stmatrix and ldmatrix of the same rows touch the
// same words by the same lanes. That is program order: only the lanes that have the elements access a row (R-ROW).
// launch: grid=1 block=32 arch=sm_90
// arg: x u32[128]=arange
// arg: out u32[4,128]=zeros
// result: out = np.stack([x, x + 1, x + 2, x + 2])
__device__ void load(unsigned (&r)[4], unsigned at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
__device__ void store(const unsigned (&r)[4], unsigned at) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" :: "r"(at), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
}
extern "C" __global__ void kernel(const unsigned* x, unsigned* out) {
    __shared__ __align__(16) unsigned words[128];
    unsigned t = threadIdx.x, at = (unsigned)__cvta_generic_to_shared(words + 4 * t), r[4];
    for (int m = 0; m < 4; m++) words[m * 32 + t] = x[m * 32 + t];
    load(r, at);
    for (int m = 0; m < 4; m++) out[m * 32 + t] = r[m]++;
    store(r, at);
    load(r, at);
    for (int m = 0; m < 4; m++) out[128 + m * 32 + t] = r[m]++;
    store(r, at);
    for (int m = 0; m < 4; m++) out[256 + m * 32 + t] = words[m * 32 + t];
    __syncwarp();
    unsigned short* halves = (unsigned short*)words;
    for (int i = 0; i < 8; i++) halves[(i / 2 * 8 + t % 4 * 2 + i % 2) * 8 + t / 4] = (unsigned short)(r[i / 2] >> i % 2 * 16);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" :: "r"(at), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
    for (int m = 0; m < 4; m++) {
        unsigned at_row = (m * 8 + t % 4 * 2) * 8 + t / 4;
        out[384 + m * 32 + t] = halves[at_row] | (unsigned)halves[at_row + 8] << 16;
    }
}
