// Four stores of a statement, one after the other; the swizzle sends two lanes to one group of words, so that other groups stay unwritten.
// launch: grid=1 block=64
// arg: x f32[2,16,16]=random
// arg: out f32[2,16,16]=zeros
// expect: data-race WAW @put @put severity=error
// allow: uninitialized-read
// result: out = x.transpose(0, 2, 1)
#ifdef RACY
#define PLACE(row, group) ((row) & 3 & (group))
#else
#define PLACE(row, group) ((row) & 3 ^ (group))
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[256];
    const unsigned t = threadIdx.x, row = t / 4, group = t % 4;
#pragma unroll 1
    for (unsigned k = 0; k < 2; k++) {
        const float4 v = *(const float4*)&x[k * 256 + row * 16 + group * 4];
        float* to = &tile[row * 16 + PLACE(row, group) * 4];
        to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;  /*@put*/
        __syncthreads();
        for (unsigned j = 0; j < 4; j++) {
            const unsigned r = group * 4 + j;
            out[k * 256 + row * 16 + r] = tile[r * 16 + PLACE(r, row / 4) * 4 + row % 4];
        }
        __syncthreads();
    }
}
