// Threads of a cuda::barrier leave in the midst: 48 of 64 go on, so arrivals of a warp do not fit into what a phase has left. In the racy twin
// they arrive before the read and do not wait: phases go on unwaited for. The count is right, and the race is what is wrong.
// launch: grid=1 block=64
// arg: x f32[64]=random
// arg: out f32[64]=zeros
// expect: data-race|uninitialized-read RAW @get severity=error
// allow: data-race RAW @put @get severity=error
// allow: barrier-misuse severity=error
// allow: deadlock severity=error
// result: out = (lambda a: np.where(np.arange(64) < 16, a, a + a[np.where(np.arange(64) >= 32, np.arange(64) - 16, np.arange(64) + 16)]))(x + x[np.arange(64) ^ 32])
#include <cuda/barrier>
extern "C" __global__ void kernel(const float* x, float* out) {
    using bar = cuda::barrier<cuda::thread_scope_block>;
    __shared__ alignas(8) char raw[sizeof(bar)];
    __shared__ float s[64];
    bar& b = *(bar*)raw;
    const int t = threadIdx.x;
    if (t == 0) init(&b, 64);
    __syncthreads();
    float v = x[t];
    for (int k = 0; k < 2; k++) {
        if (t < 16 && k == 1) { b.arrive_and_drop(); break; }
        b.arrive_and_wait();
        s[t] = v; /*@put*/
#ifdef RACY
        auto token = b.arrive();
        (void)token;
#else
        b.arrive_and_wait();
#endif
        v += k < 1 ? s[t ^ 32] : s[t >= 32 ? t - 16 : t + 16]; /*@get*/
    }
    out[t] = v;
}
