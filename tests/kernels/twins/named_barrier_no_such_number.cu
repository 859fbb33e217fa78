// Roles take a barrier each, counted from 1, and one role too many (undefined behaviour: not run on a chip).
// launch: grid=1 block=64
// backends: cpu
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: barrier-misuse @barrier severity=error
// allow: data-race
// allow: uninitialized-read
// result: out = x[::-1]
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float buffer[64];
    int t = threadIdx.x, id = (int)gridDim.x + 14;
#ifdef RACY
    id += 1;
#endif
    buffer[t] = x[t];
    asm volatile("bar.sync %0, 64;" :: "r"(id) : "memory");  /*@barrier*/
    out[t] = buffer[63 - t];
}
