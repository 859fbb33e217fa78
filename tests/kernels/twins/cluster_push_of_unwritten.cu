// A push reads bytes that nobody has written. Its receiver has waited for it, and stores there then: the store comes behind, and explains nothing.
// launch: grid=2 block=32 arch=sm_90a
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: uninitialized-read @push severity=error
// result: out = x.reshape(2, 32)[::-1].ravel()
#include "../hopper.cuh"
#define WAIT_AS(form, bar, type, value) \
    asm volatile("{\n.reg .pred done;\nagain:\nmbarrier." form ".shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}" \
                 ::"r"(shared(&bar)), type(value) : "memory")
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const float* x, float* out) {
    __shared__ alignas(128) float from[32], to[32];
    __shared__ u64 full;
    u32 t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
        init(full, 1);
        FENCE_INIT();
        expect(full, sizeof to);
    }
#ifndef RACY
    from[t] = x[rank * 32 + t];
    fence_async_shared();
#endif
    CLUSTER_SYNC();
    if (t == 0) PUSH(peer(to, rank ^ 1), from, sizeof from, peer(&full, rank ^ 1));  /*@push*/
    WAIT_CLUSTER(full, 0);
    PUT(peer(&from[t], rank ^ 1), 0.0f);
    out[rank * 32 + t] = to[t];
    CLUSTER_SYNC();
}
