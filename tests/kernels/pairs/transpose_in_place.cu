// In-place transpose by tile pairs; halo stencil with double buffering in shared memory.
// launch: grid=3x3 block=32x8
// arg: m f32[96,96]=random
// result: m = m.T
// bug 1: data-race|global-race pairs are done twice: no i <= j guard
// bug 2: data-race no barrier between loads and stores
// bug 3: global-race|data-race diagonal tile written at the wrong offset
extern "C" __global__ void kernel(float* m) {
    __shared__ float a[32][33], b[32][33];
    const int bi = blockIdx.y, bj = blockIdx.x, x = threadIdx.x;
#if BUG != 1
    if (bi > bj) return;
#endif
    for (int y = threadIdx.y; y < 32; y += 8) {
        a[y][x] = m[(bi * 32 + y) * 96 + bj * 32 + x];
        if (bi != bj) b[y][x] = m[(bj * 32 + y) * 96 + bi * 32 + x];
    }
#if BUG != 2
    __syncthreads();
#endif
    for (int y = threadIdx.y; y < 32; y += 8) {
#if BUG == 3
        m[(bj * 32 + y) * 96 + bi * 32 + x + (bi == bj && bi < 2)] = a[x][y];
#else
        m[(bj * 32 + y) * 96 + bi * 32 + x] = a[x][y];
#endif
        if (bi != bj) m[(bi * 32 + y) * 96 + bj * 32 + x] = b[x][y];
    }
}
