// A ring exchange over 8 CTAs.
// launch: grid=8 block=64 arch=sm_90
// arg: x u32[8,64]=random
// arg: out u32[8,64]=zeros
// result: out = np.tile(x.sum(0), (8, 1))
#define CTAS 8
#include "../cluster_ring.cuh"
