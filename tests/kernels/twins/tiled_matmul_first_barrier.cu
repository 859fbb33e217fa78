// The barrier between filling the tiles and reading them is missing; the one that ends the iteration is there. From the
// second iteration on every byte is initialised; in the first one a reader may come before any writer.
// launch: grid=1 block=16x16
// arg: a f32[16,32]=random
// arg: b f32[32,16]=random
// arg: c f32[16,16]=zeros
// arg: n i32=32
// expect: data-race|uninitialized-read RAW @b_read severity=error
// allow: data-race|uninitialized-read RAW @a_read
// result: c = a @ b
extern "C" __global__ void kernel(const float* a, const float* b, float* c, int n) {
    __shared__ float as[16][16];
    __shared__ float bs[16][16];
    int tx = threadIdx.x, ty = threadIdx.y;
    float sum = 0.0f;
    for (int k0 = 0; k0 < n; k0 += 16) {
        as[ty][tx] = a[ty * n + k0 + tx];
        bs[ty][tx] = b[(k0 + ty) * 16 + tx];
#ifndef RACY
        __syncthreads();
#endif
        for (int k = 0; k < 16; k++) {
            float left = as[ty][k];   /*@a_read*/
            float right = bs[k][tx];  /*@b_read*/
            sum += left * right;
        }
        __syncthreads();
    }
    c[ty * 16 + tx] = sum;
}
