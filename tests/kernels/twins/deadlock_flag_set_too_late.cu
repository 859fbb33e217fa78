// Warp 1 polls a flag before a barrier, and warp 0 sets it only after that barrier.
// Not run on a chip: it would poll there until a time limit.
// backends: cpu
// launch: grid=2 block=64
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// expect: deadlock @poll @late severity=error
// result: out = x
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ int ready;
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    if (t == 0) ready = 0;
    __syncthreads();
#ifndef RACY
    if (t == 0) atomicExch(&ready, 1);
#endif
    if (t >= 32) while (atomicAdd(&ready, 0) == 0) {}  /*@poll*/
    __syncthreads();                                   /*@late*/
#ifdef RACY
    if (t == 0) atomicExch(&ready, 1);
#endif
    out[i] = x[i];
}
