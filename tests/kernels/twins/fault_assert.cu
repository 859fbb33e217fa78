// A device assertion that does not hold for the last element. The virtual machine names the place and the condition; on a GPU the
// context is lost to the process.
// launch: grid=2 block=32
// arg: x i32[64]=arange
// arg: out i32[64]=zeros
// backends: cpu
// expect: fault @assert severity=error
// result: out = x + 1
extern "C" __device__ void __assertfail(const char* condition, const char* file, unsigned line, const char* function, size_t size);

extern "C" __global__ void kernel(const int* x, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef RACY
    const int most = 63;
#else
    const int most = 64;
#endif
    if (!(x[i] < most)) __assertfail("x[i] < most", "kernel.cu", 19, "kernel", 1);  /*@assert*/
    out[i] = x[i] + 1;
}
