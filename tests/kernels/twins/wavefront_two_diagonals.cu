// Alignment of two sequences by one warp, along diagonals of which only two are kept: a lane stores over what its neighbour still reads. A
// barrier of the warp behind the store stands in a branch that lanes take in different iterations: they would meet at other barriers, and
// store what is wrong. Fixed: three diagonals.
//
// launch: grid=1 block=32
// arg:    a u8[32]=arange
// arg:    b u8[32]=arange
// arg:    best i32[1]=zeros
// expect: data-race @read @write severity=error
// result: best = np.full(1, 64, np.int32)
#ifdef RACY
#define DIAGONALS 2
#else
#define DIAGONALS 3
#endif
extern "C" __global__ void kernel(const unsigned char* a, const unsigned char* b, int* best) {
    __shared__ int h[DIAGONALS][32];
    int t = threadIdx.x, top = 0;
    for (int i = 0; i < DIAGONALS; ++i) h[i][t] = 0;
    __syncwarp();
    for (int d = 0; d < 63; ++d) {
        int j = d - t, value = 0;
        if (j >= 0 && j < 32) {
            int diag = t && j ? h[(d + DIAGONALS - 2) % DIAGONALS][t - 1] : 0;  /*@read*/
            int up = t ? h[(d + DIAGONALS - 1) % DIAGONALS][t - 1] : 0, left = j ? h[(d + DIAGONALS - 1) % DIAGONALS][t] : 0;
            value = max(max(0, diag + ((a[t] & 3) == (b[j] & 3) ? 2 : -1)), max(up, left) - 1);
            h[d % DIAGONALS][t] = value;  /*@write*/
            top = max(top, value);
        }
        __syncwarp();
    }
    atomicMax(best, top);
}
