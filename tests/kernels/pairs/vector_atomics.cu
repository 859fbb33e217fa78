// Gradients scattered by vector and packed atomics (sm_90), read by the last CTA.
// launch: grid=4 block=32 arch=sm_90
// arg: idx i32[4,32]=arange
// arg: grad f32[16,4]=zeros
// arg: count u32[1]=zeros
// arg: out f32[16,4]=zeros
// bug 1: global-race no fences
// bug 2: clean vector atomics beside scalar ones of an element
// bug 3: global-race vector atomics beside plain vector adds
// bug 4: global-race vector read by the last CTA without an acquire
// bug 5: clean red.global.v4.f32
// bug 6: clean four scalars
// bug 7: global-race warn a 64-bit atomic beside two of 32 bits on the same bytes
extern "C" __global__ void kernel(const int* __restrict__ idx, float* grad, unsigned* count, float* out) {
    __shared__ bool last;
    int t = threadIdx.x, row = idx[blockIdx.x * 32 + t] % 16;
    float4* to = (float4*)(grad + row * 4);
    float4 v = make_float4(1, 2, 3, 4);
#if BUG == 2
    if (blockIdx.x % 2) { atomicAdd(to, v); } else { atomicAdd(grad + row * 4 + 1, 2.f); atomicAdd((float2*)(grad + row * 4 + 2), make_float2(3, 4)); }
#elif BUG == 3
    if (blockIdx.x == 1) { float4 o = *to; *to = make_float4(o.x + 1, o.y + 2, o.z + 3, o.w + 4); } else atomicAdd(to, v);
#elif BUG == 5
    asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
#elif BUG == 6
    for (int k = 0; k < 4; k++) atomicAdd(grad + row * 4 + k, k + 1.f);
#elif BUG == 7
    if (blockIdx.x == 1) atomicAdd((unsigned long long*)to, 1ull); else atomicAdd((unsigned*)to, 1u);
#else
    atomicAdd(to, v);
#endif
#if BUG != 1
    __threadfence();
#endif
    __syncthreads();
    if (t == 0) last = atomicAdd(count, 1u) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
#if BUG != 1 && BUG != 4
    __threadfence();
#endif
    if (t < 16) ((float4*)out)[t] = ((float4*)grad)[t];
}
