// R-TX1, between CTAs: each CTA fetches elements of a texture of linear memory, and the racy one writes some that another CTA fetches. Fetches
// of elements that nobody writes are no race, though the texture covers the bytes that are written.
//
// launch: grid=4 block=32
// arg:    data u32[256]=arange
// arg:    plane tex:data,memory=linear
// expect: global-race RAW @store @fetch severity=error
// backends: cpu
// result: data = np.concatenate([np.arange(128), np.arange(128)])
extern "C" __global__ void kernel(unsigned* data, unsigned long long plane) {
    unsigned i = blockIdx.x * 32 + threadIdx.x, value, unused;
    asm volatile("tex.1d.v4.u32.s32 {%0, %1, %1, %1}, [%2, {%3}];" : "=r"(value), "=r"(unused) : "l"(plane), "r"(i) : "memory");  /*@fetch*/
#ifdef RACY
    data[(i + 32) % 128] = value;  /*@store*/
#else
    data[i + 128] = value;  /*@store*/
#endif
}
