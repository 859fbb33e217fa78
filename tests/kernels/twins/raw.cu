// Threads hand values to each other through shared memory; the racy twin has no barrier between store and load.
// The bytes are initialised and published first, so that a read that comes too early is a race and nothing else.
// launch: grid=2 block=128
// arg: x f32[256]=arange
// arg: out f32[256]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = x.reshape(2, 128)[:, ::-1].reshape(-1)
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[128];
    int t = threadIdx.x, i = blockIdx.x * 128 + t;
    tile[t] = 0.0f;
    __syncthreads();
    tile[t] = x[i];  /*@write*/
#ifndef RACY
    __syncthreads();
#endif
    out[i] = tile[127 - t];  /*@read*/
}
