// Dekker's algorithm in shared memory: each of two warps raises its flag and works while the other's is not up. One thread has lowered both at first.
// Without fence.sc between store and load in both, both may work (R-MO2).
// backends: cpu
// launch: grid=1 block=64
// arg: out u32[1]=zeros
// expect: missing-order RAW @store @load severity=warning
// expect: data-race @count @count severity=error
// result: out = np.full(1, 6)
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ volatile unsigned flags[2], turn;
    __shared__ unsigned count;
    unsigned w = threadIdx.x / 32;
    if (threadIdx.x == 0) flags[0] = flags[1] = turn = count = 0;
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        for (int i = 0; i < 3; i++) {
            flags[w] = 1;  /*@store*/
#ifndef RACY
            __threadfence_block();
#endif
            while (flags[w ^ 1]) {  /*@load*/
                if (turn == w) continue;
                flags[w] = 0;
                while (turn != w) {}
                flags[w] = 1;  /*@store*/
                __threadfence_block();
            }
            __threadfence_block();
            count++;  /*@count*/
            __threadfence_block();
            turn = w ^ 1;
            flags[w] = 0;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) *out = count;
}
