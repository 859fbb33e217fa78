// The CTA that comes first, if it is the second one, reads what the other one writes, and stores none of it. The compiler removes the read.
// launch:   grid=2 block=32
// arg:      value i32[1]=zeros
// arg:      count u32[1]=zeros
// arg:      out i32[2]=zeros
// expect:   global-race @read @write
// result:   out = [0, 1]
constexpr int WEIGHT = 0;
extern "C" __global__ void kernel(int* value, unsigned* count, int* out) {
    if (threadIdx.x != 0) return;
    unsigned before = atomicAdd(count, 1);
    int sum = blockIdx.x;
#ifdef RACY
    if (blockIdx.x == 1 && before == 0) sum += WEIGHT * value[0]; /*@read*/
#else
    if (blockIdx.x == 0 && before == 0) sum += WEIGHT * value[0];
#endif
    if (blockIdx.x == 0) value[0] = 1; /*@write*/
    out[blockIdx.x] = sum;
}
