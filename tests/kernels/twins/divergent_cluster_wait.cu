// Every lane arrives at the barrier of the cluster, but half of a warp does not wait. Undefined: no chip runs it.
// backends: cpu
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: barrier-misuse @point severity=error
// result: out = x
extern "C" __global__ void kernel(const float* x, float* out) {
    int t = threadIdx.x;
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
#ifdef RACY
    if (t % 32 < 16)
#endif
        asm volatile("barrier.cluster.wait.aligned;" ::: "memory");  /*@point*/
    out[t] = x[t];
}
