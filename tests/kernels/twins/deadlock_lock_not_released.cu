// A lock that is taken in turn by one lane of each warp, and not given back where a thread leaves early.
// Not run on a chip: it would poll there until a time limit.
// backends: cpu
// launch: grid=1 block=128
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// arg: lock i32[4]=zeros
// expect: deadlock @take severity=error
// result: out = x
extern "C" __global__ void kernel(const float* x, float* out, int* lock) {
    int t = threadIdx.x;
    if (t % 32 == 0) {
        while (atomicCAS(&lock[2], 0, 1) != 0) {}      /*@take*/
        __threadfence();
#ifdef RACY
        if (x[t] >= 0.0f) return;
#endif
        atomicExch(&lock[2], 0);
    }
    out[t] = x[t];
}
