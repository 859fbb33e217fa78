// Odd-even sort in global memory: in each round two neighbours change places, if they are in the wrong order. A barrier lacks between the rounds. This
// is no maximum, and no test that an atomic could make: two elements change at once. (On a GPU one warp may be done before the other begins.)
// launch: grid=1 block=64
// backends: cpu
// arg:    a i32[128]=random
// expect: data-race @swap @swap severity=error
// result: a = np.sort(a)
extern "C" __global__ void kernel(int* a) {
    int thread = threadIdx.x;
    for (int round = 0; round < 128; round++) {
        int i = 2 * thread + (round & 1);
        if (i + 1 < 128) {
            int one = a[i], two = a[i + 1];      /*@swap*/
            if (one > two) a[i] = two, a[i + 1] = one;  /*@swap*/
        }
#ifndef RACY
        __syncthreads();
#endif
    }
}
