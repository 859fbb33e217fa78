// G13: a load with .nc needs bytes that the whole launch leaves alone, those that a later store of the same thread changes too.
//
// launch: grid=1 block=32
// arg:    data f32[32]=zeros
// arg:    out f32[32]=zeros
// expect: data-race WAR @load @store severity=warning
// result: out = np.ones(32, np.float32)
extern "C" __global__ void kernel(float* data, float* out) {
#ifdef RACY
    float old = __ldg(&data[threadIdx.x]);  /*@load*/
#else
    float old = data[threadIdx.x];
#endif
    data[threadIdx.x] = old + 1;  /*@store*/
    out[threadIdx.x] = old + 1;
}
