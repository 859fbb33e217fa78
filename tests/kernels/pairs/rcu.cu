// A table is replaced while others read it: the new one is built aside and its index is published.
// launch: grid=8 block=64
// arg: current u32[1]=zeros
// arg: table f32[3,64]=random
// arg: out f32[8,64]=zeros
// bug 1: global-race the readers follow the index without an acquire: dependencies order nothing
// bug 2: global-race no fence before the index
// bug 3: global-race no barrier before the index
// bug 4: global-race the old table is overwritten at once
// bug 5: clean ld.acquire by every thread
// bug 6: global-race warn thread 0 reads the index and hands it on through a shuffle only
// bug 7: clean thread 0 acquires and hands it on through shared memory and a barrier
// bug 8: scope ld.acquire.cta
// bug 9: global-race ld.acquire of a byte of the index
__device__ unsigned read_index(unsigned* current) {
    unsigned v;
#if BUG == 8
    asm volatile("ld.acquire.cta.global.u32 %0, [%1];" : "=r"(v) : "l"(current) : "memory");
#elif BUG == 9
    unsigned short b;
    asm volatile("{.reg .b16 h; ld.acquire.gpu.global.u8 h, [%1]; mov.b16 %0, h;}" : "=h"(b) : "l"(current) : "memory");
    v = b;
#else
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(current) : "memory");
#endif
    return v;
}
extern "C" __global__ void kernel(unsigned* current, float* table, float* out) {
    __shared__ unsigned handed;
    int t = threadIdx.x, b = blockIdx.x;
    if (b == 0) {
        for (unsigned version = 1; version < 3; version++) {
            table[version * 64 + t] = version * 10 + t;
#if BUG != 3
            __syncthreads();
#endif
            if (t == 0) {
#if BUG != 2
                __threadfence();
#endif
                *(volatile unsigned*)current = version;
            }
#if BUG == 4
            table[(version - 1) * 64 + t] = 0;
#endif
        }
        return;
    }
#if BUG == 1 || BUG == 2
    unsigned index = *(volatile unsigned*)current;
#if BUG == 2
    __threadfence();
#endif
#elif BUG == 6
    unsigned index = 0;
    if (t % 32 == 0) index = read_index(current);
    index = __shfl_sync(~0u, index, 0);
#elif BUG == 7
    if (t == 0) handed = read_index(current);
    __syncthreads();
    unsigned index = handed;
#else
    unsigned index = read_index(current);
#endif
    out[b * 64 + t] = table[index * 64 + t];
}
