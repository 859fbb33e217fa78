// A narrow wait does not hide that a proxy fence lacks as well: whoever widens the scope still has the bulk store of stale bytes.
// launch: grid=2 block=32 arch=sm_90a
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: scope RAW @put @store severity=warning
// expect: missing-proxy-fence RAW @put @store severity=error
// result: out = x.reshape(2, 32)[::-1].ravel()
#include "../hopper.cuh"
#define WAIT_AS(form, bar, type, value) \
    asm volatile("{\n.reg .pred done;\nagain:\nmbarrier." form ".shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}" \
                 ::"r"(shared(&bar)), type(value) : "memory")
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[32];
    __shared__ u64 full;
    u32 t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
        init(full, 32);
        FENCE_INIT();
    }
    CLUSTER_SYNC();
    PUT(peer(&tile[t], rank ^ 1), x[rank * 32 + t]);  /*@put*/
    ARRIVE_THERE(peer(&full, rank ^ 1));
#ifdef RACY
    wait(full, 0);
#else
    WAIT_CLUSTER(full, 0);
    fence_async_shared();
    __syncwarp();
#endif
    if (t == 0) {
        bulk_store(out + rank * 32, tile, sizeof tile);  /*@store*/
        bulk_commit();
        bulk_wait<0>();
    }
    CLUSTER_SYNC();
}
