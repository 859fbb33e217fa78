// a @ b + a: the epilogue reads operand A once more and writes its transposed tile over it, element by element.
// launch: grid=1 block=16x16 smem=2048
// arg: a f32[16,16]=random
// arg: b f32[16,16]=random
// arg: c f32[16,16]=zeros
// expect: data-race WAR @a_read @c_write severity=error
// result: c = (a @ b + a).T
extern "C" __global__ void kernel(const float* a, const float* b, float* c) {
    extern __shared__ float tiles[];
    float* as = tiles;
    float* bs = tiles + 256;
    int tx = threadIdx.x, ty = threadIdx.y, i = ty * 16 + tx;
    as[i] = a[i];
    bs[i] = b[i];
    __syncthreads();
    float sum = 0.0f;
#pragma unroll 1
    for (int k = 0; k < 16; k++) sum += as[ty * 16 + k] * bs[k * 16 + tx];
    __syncthreads();
    sum += as[i];  /*@a_read*/
#ifndef RACY
    __syncthreads();
#endif
    as[tx * 16 + ty] = sum;  /*@c_write*/
    __syncthreads();
    c[i] = as[i];
}
