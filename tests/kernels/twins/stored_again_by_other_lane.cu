// In each iteration of a loop a lane stores to the next word, over what its neighbour has stored in the iteration before: nothing but
// __syncwarp() orders the two.
// launch: grid=1 block=32
// arg: out i32[32]=zeros
// expect: data-race WAW @store severity=error
// result: out = (np.arange(32) - 3) % 32
extern "C" __global__ void kernel(int* out) {
    __shared__ int s[32];
    const int t = threadIdx.x;
#pragma unroll 1
    for (int k = 0; k < 4; ++k) {
        s[(t + k) % 32] = t;  /*@store*/
#ifndef RACY
        __syncwarp();
#endif
    }
    __syncthreads();
    out[t] = s[t];
}
