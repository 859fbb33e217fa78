// Two requests into one slot are in flight, each on a barrier of its own (R-C9, T19).
// launch: grid=6 block=64 arch=sm_100a
// arg: out u32[6,64]=zeros
// expect: data-race WAW @first @second severity=error
// allow: missing-wait @second @read severity=error
// allow: missing-wait @first @read severity=error
#include "../blackwell.cuh"
extern "C" __global__ void kernel(u32* out) {
    __shared__ Response responses[2];
    __shared__ u64 full[2];
    if (threadIdx.x == 0) init(full[0], 1), init(full[1], 1);
    __syncthreads();
#ifdef RACY
    constexpr u32 SECOND = 0;
#else
    constexpr u32 SECOND = 1;
#endif
    if (threadIdx.x == 0) {
        expect(full[0], 16), expect(full[1], 16);
        request(responses[0], full[0]);       /*@first*/
        request(responses[SECOND], full[1]);  /*@second*/
    }
    for (u32 i = 0, tile; i < 2; ++i) {
        wait(full[i], 0);
        if (taken(responses[i * SECOND], tile)) out[tile * blockDim.x + threadIdx.x] = 1;  /*@read*/
    }
}
