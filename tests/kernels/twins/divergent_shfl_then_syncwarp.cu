// Half of a warp executes a shuffle whose mask names the whole warp; behind it a part of that half skips a __syncwarp of the half.
// The others wait behind it.
// The lanes go on behind the shuffle, so the second fault is found, too. Undefined: no chip runs it.
// backends: cpu
// launch: grid=1 block=32
// arg: x f32[32]=arange
// arg: out f32[32]=zeros
// expect: barrier-misuse @shuffle @all severity=error
// expect: barrier-misuse @sync @all severity=error
// result: out = np.where(np.arange(32) < 16, np.arange(32) ^ 1, 0)
extern "C" __global__ void kernel(const float* x, float* out) {
    int t = threadIdx.x;
#ifdef RACY
    const unsigned lanes = 0xffffffffu;
    const int last = 8;
#else
    const unsigned lanes = 0xffffu;
    const int last = 16;
#endif
    float mine = 0;
    if (t < 16) {
        mine = __shfl_xor_sync(lanes, x[t], 1);  /*@shuffle*/
        if (t < last) __syncwarp(0xffffu);  /*@sync*/
    }
    if (x[0] == 0) __syncwarp();  /*@all*/
    out[t] = mine;
}
