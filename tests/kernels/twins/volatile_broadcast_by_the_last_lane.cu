// R-MO1, timing alone, between lanes: the last lane stores a volatile word, and the others load it with no order. Lanes do not run in step.
//
// launch: grid=1 block=32
// arg:    x f32[1]=zeros
// arg:    out f32[32]=zeros
// expect: missing-order RAW @store @load severity=warning
// result: out = np.full(32, 1)
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ volatile float sum;
    if (threadIdx.x == 31) sum = *x;
    __syncwarp();
    if (threadIdx.x == 31) sum = *x + 1;  /*@store*/
#ifndef RACY
    __syncwarp();
#endif
    out[threadIdx.x] = sum;  /*@load*/
}
