// A pipelined product in clusters, whose consumers hand their stages back with the default scope of an arrival, .cta. The products are over
// when they do, and CUTLASS's pipelines do the same. It is a bug by the ISA: a scope is missing, not a wait.
// launch: grid=2x1 block=160 arch=sm_90a
// arg: a tma:f16[128,64]=random,box=64x8
// arg: b tma:f16[8,64]=random,box=8x8
// arg: out f32[2,1,64,8]=zeros
// expect: scope severity=warning
// result: out = (a.astype(np.float32) @ b.astype(np.float32).T).reshape(2, 64, 1, 8).transpose(0, 2, 1, 3)
enum { M = 2, N = 1 };
#ifdef RACY
#define RELEASE ARRIVE_THERE_CTA
#endif
#include "../cluster_gemm.cuh"
