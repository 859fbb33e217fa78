// A lane executes __syncwarp with a mask that lacks it, as in compute-sanitizer's illegal_syncwarp: 17 lanes come, and the mask names 16 (R-BAR1).
// launch: grid=1 block=32
// arg: out i32[1]=zeros
// expect: barrier-misuse @sync severity=error
// allow: data-race
// result: out = np.array([120])
extern "C" __global__ void kernel(int* out) {
    __shared__ int parts[32];
    unsigned t = threadIdx.x, mask = __ballot_sync(0xffffffff, t < 16);
#ifdef RACY
    if (t <= 16) {
#else
    if (t < 16) {
#endif
        parts[t] = t;
        __syncwarp(mask);  /*@sync*/
        if (t == 0) {
            int sum = 0;
            for (int i = 0; i < 16; i++) sum += parts[i];
            *out = sum;
        }
    }
}
