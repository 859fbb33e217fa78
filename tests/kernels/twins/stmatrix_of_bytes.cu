// stmatrix of bytes (.m16n8, sm_100): two warps store the same even rows. Their values differ there in the columns from 8 on only: byte 2
// of each register. No GPU of the tests has it.
// backends: cpu
// launch: grid=1 block=64 arch=sm_100a
// arg: out u8[256]=zeros
// expect: data-race WAW @store @store severity=error
// result: out = np.where((np.arange(256) % 16 < 8) | (np.arange(256) // 16 % 2 == 1), 1, 2 + np.arange(256) // 128)
extern "C" __global__ void kernel(unsigned char* out) {
    __shared__ alignas(16) unsigned char tile[2][128];
    int t = threadIdx.x, warp = t / 32, row = t % 8;
    for (int i = t; i < 256; i += 64) tile[i / 128][i % 128] = 0;
    __syncthreads();
    unsigned fragment = 0x01000101 | (2 + warp) << 16;
#ifdef RACY
    unsigned char* rows = tile[row % 2 ? warp : 0];
#else
    unsigned char* rows = tile[warp];
#endif
    unsigned to = (unsigned)__cvta_generic_to_shared(rows) + row * 16;
    asm volatile("stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%0], {%1};" :: "r"(to), "r"(fragment) : "memory");  /*@store*/
    __syncthreads();
    for (int i = t; i < 256; i += 64) out[i] = tile[i / 128][i % 128];
}
