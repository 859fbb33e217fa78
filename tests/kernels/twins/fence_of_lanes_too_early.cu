// Each lane of a warp stores a value and has a __threadfence_block(), a __syncwarp() follows, and the last lane sets a flag in shared memory. The
// other warp polls it and has a fence behind. The fences are in this order (R-GM6), though none is wider than the CTA. With the fence before
// the store, the store is behind none.
// launch: grid=1 block=64
// arg: out i32[32]=zeros
// expect: data-race RAW @put @get severity=error
// result: out = np.arange(31, -1, -1) * 3
extern "C" __global__ void kernel(int* out) {
    __shared__ int v[32];
    __shared__ volatile int flag;
    int t = threadIdx.x;
    if (t == 0) flag = 0;
    __syncthreads();
    if (t < 32) {
#ifdef RACY
        __threadfence_block();
        v[t] = t * 3;  /*@put*/
#else
        v[t] = t * 3;  /*@put*/
        __threadfence_block();
#endif
        __syncwarp();
        if (t == 31) flag = 1;
    } else {
        while (!flag) {}
        __threadfence_block();
        out[t - 32] = v[63 - t];  /*@get*/
    }
}
