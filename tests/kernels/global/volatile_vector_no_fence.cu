// R-MO1 for vectors: four volatile words are handed to another CTA, and no fence comes before the flag.
//
// launch: grid=2 block=1
// arg:    data f32[4]=zeros
// arg:    flag u32[1]=zeros
// arg:    out f32[4]=zeros
// expect: missing-order RAW @store @load severity=warning
// result: out = np.float32([1, 2, 3, 4])
extern "C" __global__ void kernel(float4* data, volatile unsigned* flag, float4* out) {
    if (blockIdx.x == 0) {
        asm volatile("st.volatile.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(data), "f"(1.f), "f"(2.f), "f"(3.f), "f"(4.f) : "memory");  /*@store*/
#ifndef RACY
        __threadfence();
#endif
        *flag = 1;
    } else {
        float4 v;
        while (!*flag) {}
        __threadfence();
        asm volatile("ld.volatile.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(data) : "memory");  /*@load*/
        *out = v;
    }
}
