// A bulk copy lands on the word of the allocation after everybody has read it: that word needs no proxy fence, only order.
// launch: grid=1 block=128 arch=sm_100a
// arg: x u32[4]=random
// arg: out u32[128]=zeros
// result: out = np.tile(x, 32)
#include "../blackwell.cuh"
extern "C" __global__ void kernel(const u32* x, u32* out) {
    __shared__ alignas(16) u32 words[4];
    __shared__ u64 done;
    if (threadIdx.x == 0) init(done, 1);
    if (threadIdx.x < 32) alloc(words[0], COLUMNS);
    __syncthreads();
    const u32 base = words[0];
    __syncthreads();
    if (threadIdx.x == 0) {
        expect(done, 16);
        bulk_load(words, x, 16, done);
    }
    wait(done, 0);
    out[threadIdx.x] = words[threadIdx.x % 4];
    __syncthreads();
    if (threadIdx.x < 32) dealloc(base, COLUMNS);
}
