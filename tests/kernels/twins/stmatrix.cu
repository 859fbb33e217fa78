// stmatrix stores a tile that another warp reads word by word.
// launch: grid=1 block=64 arch=sm_90
// arg: out u16[512]=zeros
// expect: data-race RAW @stmatrix @read severity=error
// result: out = np.arange(512)
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ __align__(16) unsigned short tile[2][256];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    for (int k = 0; k < 4; k++) ((unsigned*)tile)[k * 64 + t] = 0;
    __syncthreads();
    unsigned r[4];
    for (int m = 0; m < 4; m++) {
        int row = m % 2 * 8 + lane / 4, col = m / 2 * 8 + lane % 4 * 2;
        unsigned low = warp * 256 + row * 16 + col;
        r[m] = low | (low + 1) << 16;
    }
    unsigned to = (unsigned)__cvta_generic_to_shared(&tile[warp][lane % 16 * 16 + lane / 16 * 8]);
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" :: "r"(to), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");  /*@stmatrix*/
#ifndef RACY
    __syncthreads();
#endif
    int other = (t + 32) % 64;
    for (int k = 0; k < 4; k++) {
        out[other * 4 + k] = ((const unsigned*)tile)[other * 4 + k];  /*@read*/
    }
}
