// G8: the last block resets the counter with a plain store, with no fence at all.
//
// launch: grid=4 block=32
// arg:    count u32[2]=zeros
// result: count = np.uint32([0, 4])
extern "C" __global__ void kernel(unsigned* count) {
    if (threadIdx.x) return;
    unsigned seen = atomicAdd(count, 1);
    if (seen == gridDim.x - 1) {
        count[1] = seen + 1;
        count[0] = 0;
    }
}
