// A, B and the epilogue tile at overlapping offsets of one dynamic buffer: B overlaps the second half of A, the epilogue
// tile what is left of A and half of B. Every hand-over needs a barrier of its own.
// launch: grid=1 block=128 smem=768
// arg: a f32[128]=arange
// arg: b f32[128]=arange
// arg: out f32[128]=zeros
// expect: data-race WAR @a_read @b_write severity=error
// expect: data-race WAR @b_read @c_write severity=error
// result: out = a + b
#ifdef RACY
#define HAND_OVER()
#else
#define HAND_OVER() __syncthreads()
#endif
extern "C" __global__ void kernel(const float* a, const float* b, float* out) {
    extern __shared__ float buffer[];
    float* as = buffer;
    float* bs = buffer + 64;
    float* cs = buffer + 32;
    int t = threadIdx.x;
    as[t] = a[t];
    __syncthreads();
    float left = as[127 - t];  /*@a_read*/
    HAND_OVER();
    bs[t] = b[t];  /*@b_write*/
    __syncthreads();
    float right = bs[127 - t];  /*@b_read*/
    HAND_OVER();
    cs[t] = left + right;  /*@c_write*/
    __syncthreads();
    out[t] = cs[127 - t];
}
