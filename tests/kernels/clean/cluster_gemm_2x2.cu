// A pipelined product in clusters of 2 x 2 CTAs, both operands by multicast.
// launch: grid=2x2 block=160 arch=sm_90a
// arg: a tma:f16[128,64]=random,box=64x8
// arg: b tma:f16[16,64]=random,box=8x8
// arg: out f32[2,2,64,8]=zeros
// result: out = (a.astype(np.float32) @ b.astype(np.float32).T).reshape(2, 64, 2, 8).transpose(0, 2, 1, 3)
enum { M = 2, N = 2 };
#include "../cluster_gemm.cuh"
