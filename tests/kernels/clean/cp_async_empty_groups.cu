// Empty groups complete at once, a wait without any group passes, and threads that copy nothing may commit and wait.
// launch: grid=1 block=64
// arg: x f32[128]=arange
// arg: out f32[64]=zeros
// result: out = x[::-2]
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group " #n ";" ::: "memory")
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ __align__(16) float tile[128];
    int t = threadIdx.x;
    WAIT(0);
    COMMIT();
    WAIT(0);
    if (t < 32) {
        unsigned to = (unsigned)__cvta_generic_to_shared(&tile[4 * t]);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(__cvta_generic_to_global(x + 4 * t)) : "memory");
    }
    COMMIT();
    COMMIT();
    COMMIT();
    WAIT(2);
    __syncthreads();
    out[t] = tile[127 - 2 * t];
    asm volatile("cp.async.wait_all;" ::: "memory");
}
