// Each CTA sums 256 values over some terms in shared memory, and sends the tile out by a bulk copy, which reads through the async proxy.
extern "C" __global__ void sum(const float* x, float* out, int terms) {
    __shared__ __align__(128) float tile[256];
    int t = threadIdx.x;
    for (int i = t; i < 256; i += 128) tile[i] = 0.0f;
#pragma unroll 1
    for (int k = 0; k < terms; k++) {
        for (int i = t; i < 256; i += 128) tile[i] += x[(i + k) & 1023];
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
        unsigned source = (unsigned)__cvta_generic_to_shared(tile);
        size_t target = __cvta_generic_to_global(out + blockIdx.x * 256);
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 1024;" ::"l"(target), "r"(source) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
