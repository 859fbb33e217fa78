// The classic tiled matmul; the racy twin lacks the barrier that ends an iteration. A row of `as` belongs to one warp, so
// that its race stays inside the warp; a column of `bs` is read by every warp.
// launch: grid=2x2 block=16x16
// arg: a f32[32,32]=random
// arg: b f32[32,32]=random
// arg: c f32[32,32]=zeros
// arg: n i32=32
// expect: data-race WAR @a_write @a_read severity=error
// expect: data-race WAR @b_write @b_read severity=error
// result: c = a @ b
extern "C" __global__ void kernel(const float* a, const float* b, float* c, int n) {
    __shared__ float as[16][16];
    __shared__ float bs[16][16];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
    float sum = 0.0f;
    for (int k0 = 0; k0 < n; k0 += 16) {
        as[ty][tx] = a[row * n + k0 + tx];    /*@a_write*/
        bs[ty][tx] = b[(k0 + ty) * n + col];  /*@b_write*/
        __syncthreads();
        for (int k = 0; k < 16; k++) {
            float left = as[ty][k];   /*@a_read*/
            float right = bs[k][tx];  /*@b_read*/
            sum += left * right;
        }
#ifndef RACY
        __syncthreads();
#endif
    }
    c[row * n + col] = sum;
}
