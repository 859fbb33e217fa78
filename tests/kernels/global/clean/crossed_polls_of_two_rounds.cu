// Two warps count their rounds in a flag each, and the second one is first in the second round. No loop is left with the 0 of before a warp's first
// store; that the first warp leaves one with the 2 of the second round does not say that it may miss the 1 (R-MO2). Two counters let both look
// late, so that no load gives the 0.
// launch: grid=1 block=64
// arg: x u32[4]=zeros
// arg: out u32[2]=zeros
// result: out = np.full(2, 2)
extern "C" __global__ void kernel(volatile unsigned* x, unsigned* out) {
    if (threadIdx.x % 32) return;
    if (threadIdx.x == 0) {
        x[0] = 1;
        for (int i = 1; i < 4; i++) x[3] = i;
        while (x[2] < 3) {}
        out[0] = x[3];
        while (x[1] < 2) {}
        x[0] = 2;
        out[0] = 2;
    } else {
        while (x[3] < 3) {}
        x[1] = 1;
        for (int i = 1; i < 4; i++) x[2] = i;
        while (x[0] < 1) {}
        x[1] = 2;
        while (x[0] < 2) {}
        out[1] = 2;
    }
}
