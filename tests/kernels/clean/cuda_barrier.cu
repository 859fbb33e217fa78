// cuda::barrier from libcu++: split arrive and wait, arrive_and_wait, arrive_and_drop, wait_parity, and a copy that signals it.
// launch: grid=2 block=64 arch=sm_90
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// result: out = (x.reshape(2, 64)[:, ::-1] * 3).reshape(-1)
#include <cuda/barrier>
#include <cuda/std/utility>
extern "C" __global__ void kernel(const float* x, float* out) {
    using barrier = cuda::barrier<cuda::thread_scope_block>;
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ barrier all, copied;
    __shared__ alignas(16) float tile[64], more[64];
    int t = threadIdx.x, base = blockIdx.x * 64;
    if (t == 0) {
        init(&all, 64);
        init(&copied, 64);
    }
    __syncthreads();
    if (t == 0) cuda::memcpy_async(more, x + base, cuda::aligned_size_t<16>(sizeof more), copied);
    tile[t] = x[base + t];
    auto token = all.arrive();
    all.wait(cuda::std::move(token));
    float value = tile[63 - t];
    all.arrive_and_wait();
    tile[t] = value;
    auto landed = copied.arrive();
    copied.wait(cuda::std::move(landed));
    value += more[63 - t];
    (void)all.arrive();
    all.wait_parity(false);
    value += tile[t];
    out[base + t] = value;
    if (t >= 32) all.arrive_and_drop();
    else all.arrive_and_wait();
}
