// The last threads of the launch have no element, and the kernel traps instead of leaving them out. The virtual machine names the
// place; on a GPU the context is lost to the process.
// launch: grid=1 block=64
// arg: out i32[48]=zeros
// arg: n i32=48
// backends: cpu
// expect: fault @trap severity=error
// result: out = np.arange(48)
extern "C" __global__ void kernel(int* out, int n) {
    int t = threadIdx.x;
#ifdef RACY
    if (t >= n) __trap();  /*@trap*/
#else
    if (t >= n) return;
#endif
    out[t] = t;
}
