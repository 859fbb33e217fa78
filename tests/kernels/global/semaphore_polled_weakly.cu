// G1: a loop that polls with weak loads and meets at barriers. The CTA that it waits for must run on.
//
// launch: grid=3 block=64
// arg:    sum f32[64]=zeros
// arg:    turn i32[1]=zeros
// expect: global-race @poll @next severity=error
// allow:  global-race @update @update severity=error
// result: sum = np.full(64, 6, np.float32)
__device__ int seen(int* turn) {
    int found;
#ifdef RACY
    asm volatile("ld.global.cg.b32 %0, [%1];" : "=r"(found) : "l"(turn) : "memory");  /*@poll*/
#else
    asm volatile("ld.global.acquire.gpu.b32 %0, [%1];" : "=r"(found) : "l"(turn) : "memory");
#endif
    return found;
}
extern "C" __global__ void kernel(float* sum, int* turn) {
    int t = threadIdx.x, k = blockIdx.x, mine = t == 0 ? seen(turn) : 0;
    while (__syncthreads_and(t == 0 ? mine != k : 1))
        if (t == 0) mine = seen(turn);
    __syncthreads();
    sum[t] = (k ? sum[t] : 0.0f) + (k + 1);  /*@update*/
    __syncthreads();
    if (t == 0) asm volatile("st.global.release.gpu.b32 [%0], %1;" ::"l"(turn), "r"(k + 1) : "memory");  /*@next*/
}
