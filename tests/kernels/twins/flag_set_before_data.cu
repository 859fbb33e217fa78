// A thread sets a flag in shared memory, and writes its data only then.
//
// launch: grid=1 block=64
// arg:    x u32[1]=random
// arg:    out u32[1]=zeros
// expect: data-race RAW @store @load severity=error
// result: out = x
extern "C" __global__ void kernel(const unsigned* x, unsigned* out) {
    __shared__ unsigned flag, data;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
#ifdef RACY
        atomicExch(&flag, 1);
        data = x[0];  /*@store*/
#else
        data = x[0];
        __threadfence_block();
        atomicExch(&flag, 1);
#endif
    } else if (threadIdx.x == 32) {
        while (*(volatile unsigned*)&flag == 0) {}
        __threadfence_block();
        out[0] = data;  /*@load*/
    }
}
