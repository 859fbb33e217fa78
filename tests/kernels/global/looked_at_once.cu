// G2: a table is replaced, and its index published, while others read it. They take the index as it is and wait for nothing, so a schedule has to
// let some of them see the new one (those of a chip mostly come too early). RACY: they follow it without an acquire.
//
// launch: grid=4 block=64
// arg:    current u32[1]=zeros
// arg:    table f32[2,64]=random
// arg:    out f32[4,64]=zeros
// expect: global-race @write @read severity=error
// result: current = np.uint32([1])
// backends: cpu
extern "C" __global__ void kernel(unsigned* current, float* table, float* out) {
    if (blockIdx.x == 0) {
        table[64 + threadIdx.x] = threadIdx.x;  /*@write*/
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            *(volatile unsigned*)current = 1;
        }
        return;
    }
    unsigned index = *(volatile unsigned*)current;
#ifndef RACY
    __threadfence();
#endif
    out[blockIdx.x * 64 + threadIdx.x] = table[index * 64 + threadIdx.x];  /*@read*/
}
