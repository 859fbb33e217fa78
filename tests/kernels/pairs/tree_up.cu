// Bottom-up over a binary tree (Karras: bounding boxes of a BVH): who comes second to a node takes both children.
// launch: grid=4 block=16
// arg: leaf f32[64]=random
// arg: node f32[128]=zeros
// arg: flag u32[64]=zeros
// arg: out f32[1]=zeros
// result: out = leaf.max(keepdims=True)
// bug 1: global-race|data-race no fence before the counter
// bug 2: global-race|data-race no fence behind the counter
// bug 3: scope|data-race|global-race counter of the CTA's scope
// bug 4: scope|data-race|global-race __threadfence_block
// bug 5: global-race|data-race the sibling is read before the counter
// bug 6: clean acq_rel counter by cuda::atomic_ref
// bug 7: global-race|data-race relaxed counter by cuda::atomic_ref
// bug 8: global-race|data-race the node is written by who comes first, too
// bug 9: clean children through volatile accesses, no fences
#include <cuda/atomic>
#if BUG == 9
#define NODE(i) ((volatile float*)node)[i]
#else
#define NODE(i) node[i]
#endif
extern "C" __global__ void kernel(const float* __restrict__ leaf, float* node, unsigned* flag, float* out) {
    int i = blockIdx.x * 16 + threadIdx.x;
    i = i * 37 % 64;
    float v = leaf[i];
    int n = 64 + i;
    NODE(n) = v;
    for (n /= 2; n; n /= 2) {
#if BUG == 4
        __threadfence_block();
#elif BUG == 0 || BUG == 2 || BUG == 3 || BUG == 5 || BUG == 8
        __threadfence();
#endif
#if BUG == 5
        float l = NODE(2 * n), r = NODE(2 * n + 1);
#endif
#if BUG == 3
        unsigned first = atomicAdd_block(flag + n, 1u) == 0;
#elif BUG == 6
        unsigned first = cuda::atomic_ref<unsigned, cuda::thread_scope_device>(flag[n]).fetch_add(1, cuda::memory_order_acq_rel) == 0;
#elif BUG == 7
        unsigned first = cuda::atomic_ref<unsigned, cuda::thread_scope_device>(flag[n]).fetch_add(1, cuda::memory_order_relaxed) == 0;
#else
        unsigned first = atomicAdd(flag + n, 1u) == 0;
#endif
#if BUG == 8
        if (first) NODE(n) = v;
#endif
        if (first) return;
#if BUG == 0 || BUG == 1 || BUG == 3 || BUG == 4 || BUG == 5 || BUG == 8
        __threadfence();
#endif
#if BUG != 5
        float l = NODE(2 * n), r = NODE(2 * n + 1);
#endif
        v = fmaxf(l, r);
        NODE(n) = v;
    }
    *out = v;
}
