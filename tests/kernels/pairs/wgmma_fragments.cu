// wgmma with A from registers, two products in flight over two stages of B, as the second matmul of FlashAttention-3 does it.
// launch: grid=1 block=128 arch=sm_90a
// arg: x f16[4,64,16]=random
// arg: y f16[4,8,16]=random
// arg: out f32[64,8]=zeros
// bug 1: clean the fragment of the next round is loaded before the wait: into other registers
// bug 2: register-hazard no wgmma.fence before the first product
// bug 3: register-hazard the accumulator is scaled before the wait
// bug 4: data-race|missing-wait B is rewritten before the wait
// bug 5: missing-proxy-fence B is written without a proxy fence
// bug 6: register-hazard|missing-wait wait_group 1 behind the last product
// bug 7: register-hazard|missing-wait the commit is missing in the last round
// bug 8: clean two fragments in turn, wait_group 1
// bug 9: data-race|missing-proxy-fence no barrier between the writes of B and the product
#include "../hopper.cuh"
extern "C" __global__ void __launch_bounds__(128) kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 B[2][128];
    const u32 t = threadIdx.x;
    float d[4] = {0, 0, 0, 0};
    u32 a[2][4];
    load_fragment(a[0], x);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        u32 (&now)[4] = a[BUG == 8 ? k & 1 : 0];
        f16* b = B[BUG == 4 ? 0 : k & 1];
        b[place(t / 16, t % 16)] = y[k * 128 + t];
#if BUG != 5
        fence_async_shared();
#endif
#if BUG != 9
        asm volatile("bar.sync 1, 128;" ::: "memory");
#endif
        keep(d);
        for (int i = 0; i < 4; i++) asm volatile("" : "+r"(now[i])::"memory");
#if BUG != 2
        wgmma_fence();
#endif
        multiply_fragment(d, now, operand(b));
#if BUG == 7
        if (k < 3) wgmma_commit();
#else
        wgmma_commit();
#endif
#if BUG == 1
        if (k < 3) load_fragment(a[0], x + (k + 1) * 1024);
        wgmma_wait<0>();
#elif BUG == 3
        for (int i = 0; i < 4; i++) d[i] *= 0.5f;
        wgmma_wait<0>();
        if (k < 3) load_fragment(a[0], x + (k + 1) * 1024);
#elif BUG == 4
        if (k < 3) B[0][place(t / 16, t % 16)] = 0;
        wgmma_wait<0>();
        if (k < 3) load_fragment(a[0], x + (k + 1) * 1024);
#elif BUG == 6
        if (k < 3) wgmma_wait<0>();
        else wgmma_wait<1>();
        if (k < 3) load_fragment(a[0], x + (k + 1) * 1024);
#elif BUG == 8
        wgmma_wait<1>();
        if (k < 3) load_fragment(a[(k + 1) & 1], x + (k + 1) * 1024);
        asm volatile("bar.sync 2, 128;" ::: "memory");
#else
        wgmma_wait<0>();
        if (k < 3) load_fragment(a[0], x + (k + 1) * 1024);
#endif
    }
#if BUG == 8
    wgmma_wait<0>();
#endif
    write_result(out, d);
}
