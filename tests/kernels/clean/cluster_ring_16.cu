// A ring exchange over 16 CTAs. More than 8 is not portable: the launch has to allow it.
// launch: grid=16 block=64 arch=sm_90
// arg: x u32[16,64]=random
// arg: out u32[16,64]=zeros
// result: out = np.tile(x.sum(0), (16, 1))
#define CTAS 16
#include "../cluster_ring.cuh"
