// The epilogue writes its output tile where operand A was, and the racy twin does not wait until all have read A.
// launch: grid=1 block=16x16 smem=2048
// arg: a f32[16,16]=random
// arg: b f32[16,16]=random
// arg: c f32[16,16]=zeros
// expect: data-race WAR @b_read @c_write severity=error
// expect: data-race WAR @a_read @c_write severity=error
// result: c = (a @ b).T
extern "C" __global__ void kernel(const float* a, const float* b, float* c) {
    extern __shared__ float tiles[];
    float* as = tiles;
    float* bs = tiles + 256;
    float* cs = tiles + 128;  // the last half of A and the first half of B
    int tx = threadIdx.x, ty = threadIdx.y, i = ty * 16 + tx;
    as[i] = a[i];
    bs[i] = b[i];
    __syncthreads();
    float sum = 0.0f;
#pragma unroll 1
    for (int k = 0; k < 16; k++) {
        float left = as[ty * 16 + k];   /*@a_read*/
        float right = bs[k * 16 + tx];  /*@b_read*/
        sum += left * right;
    }
#ifndef RACY
    __syncthreads();
#endif
    cs[i] = sum;  /*@c_write*/
    __syncthreads();
    c[i] = cs[tx * 16 + ty];
}
