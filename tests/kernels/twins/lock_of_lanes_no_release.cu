// Lanes of a warp add to a sum in shared memory, one at a time, under a lock in shared memory: each tries until it has had its turn. Without the
// fence before it is freed nothing publishes the sum (8.8): the report names that fence, no atomic operation and no __syncwarp().
// launch: grid=1 block=32
// arg: x i32[32]=arange
// arg: out i32[1]=zeros
// expect: data-race @sum @sum severity=error
// result: out = np.array([x.sum()])
extern "C" __global__ void kernel(const int* x, int* out) {
    __shared__ int sum, lock;
    int t = threadIdx.x;
    if (t == 0) sum = lock = 0;
    __syncthreads();
    for (bool done = false; !done;) {
        if (atomicCAS(&lock, 0, 1) == 0) {
            __threadfence_block();
            sum += x[t]; /*@sum*/
#ifndef RACY
            __threadfence_block();
#endif
            atomicExch(&lock, 0);
            done = true;
        }
    }
    __syncthreads();
    if (t == 0) *out = sum;
}
