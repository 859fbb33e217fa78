// R-RACE: the threads wait for a cuda::barrier, which pauses between its looks (libcu++ before sm_90). A row ends in that of the next CTA.
//
// launch: grid=2 block=64
// arg:    x f32[128]=arange
// arg:    out f32[129]=zeros
// expect: global-race WAW @row @end severity=error
// result: out = np.append(np.roll(x.reshape(2, 64), 1, axis=1), 0)
#include <cuda/barrier>
using barrier = cuda::barrier<cuda::thread_scope_block>;
extern "C" __global__ void kernel(const float* x, float* out) {
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ barrier filled;
    __shared__ float tile[64];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    if (t == 0) init(&filled, 64);
    __syncthreads();
    tile[t] = x[i];
    auto token = filled.arrive();
    filled.wait(static_cast<barrier::arrival_token&&>(token));
    out[i] = tile[(t + 63) % 64];  /*@row*/
#ifdef RACY
    if (t == 63) out[i + 1] = -1;  /*@end*/
#endif
}
