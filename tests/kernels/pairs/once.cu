// A table is made by whichever CTA comes first (call_once), the others wait until it is there.
// launch: grid=4 block=64
// arg: state u32[1]=zeros
// arg: table f32[64]=zeros
// arg: out f32[4,64]=zeros
// result: out = np.tile(np.arange(64) * 0.5, (4, 1))
// bug 1: global-race the state is set before the table is there
// bug 2: global-race the fast path looks at the state plainly
// bug 3: global-race no fence on the side of those that wait
// bug 4: global-race no barrier between the table and the state
// bug 5: clean CAS, release and acquire by cuda::atomic_ref
// bug 6: global-race every CTA makes the table, two different ones
// bug 7: clean with a fast path by an acquire
// bug 8: scope state at the CTA's scope
#include <cuda/atomic>
#if BUG == 8
using Ref = cuda::atomic_ref<unsigned, cuda::thread_scope_block>;
#else
using Ref = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
#endif
extern "C" __global__ void kernel(unsigned* state, float* table, float* out) {
    __shared__ unsigned role;
    int t = threadIdx.x;
    if (t == 0) {
#if BUG == 2
        role = *state == 2 ? 2 : atomicCAS(state, 0u, 1u);
#elif BUG == 7
        role = Ref(*state).load(cuda::memory_order_acquire) == 2 ? 2 : atomicCAS(state, 0u, 1u);
#elif BUG == 5 || BUG == 8
        unsigned want = 0;
        role = Ref(*state).compare_exchange_strong(want, 1, cuda::memory_order_relaxed) ? 0 : 1;
#else
        role = atomicCAS(state, 0u, 1u);
#endif
#if BUG == 6
        role = 0;
#endif
    }
    __syncthreads();
    if (role == 0) {
#if BUG == 1
        if (t == 0) { __threadfence(); atomicExch(state, 2u); }
#endif
        table[t] = t * 0.5f + (BUG == 6 ? blockIdx.x : 0);
#if BUG != 4
        __syncthreads();
#endif
#if BUG == 5 || BUG == 8
        if (t == 0) Ref(*state).store(2, cuda::memory_order_release);
#elif BUG != 1
        if (t == 0) { __threadfence(); atomicExch(state, 2u); }
#endif
    } else if (role == 1 || role == 2) {
        if (t == 0) {
#if BUG == 5 || BUG == 8
            while (Ref(*state).load(cuda::memory_order_acquire) != 2) {}
#else
            while (*(volatile unsigned*)state != 2) {}
#if BUG != 3
            __threadfence();
#endif
#endif
        }
        __syncthreads();
    }
    out[blockIdx.x * 64 + t] = table[t];
}
