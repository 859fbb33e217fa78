// R-CL in global memory: a barrier of the cluster that orders nothing.
//
// launch: grid=2 block=32 arch=sm_90
// arg:    a i32[64]=zeros
// arg:    b i32[64]=zeros
// expect: global-race @store @load severity=error
// result: b = np.roll(np.arange(64), 32)
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(int* a, int* b) {
    int i = blockIdx.x * 32 + threadIdx.x;
    a[i] = i;  /*@store*/
#ifdef RACY
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#else
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    b[i] = a[(i + 32) % 64];  /*@load*/
}
