// A stencil in place: a CTA reads the halo that its neighbour writes. The correct kernel writes another array.
//
// launch: grid=4 block=32
// arg:    data f32[130]=arange
// arg:    out f32[130]=zeros
// expect: global-race @load @store severity=error
// result: out = np.concatenate([[0], np.arange(1, 129) * 3, [0]]).astype(np.float32)
extern "C" __global__ void kernel(float* data, float* out) {
    int i = 1 + blockIdx.x * blockDim.x + threadIdx.x;
    float sum = data[i - 1] + data[i] + data[i + 1];  /*@load*/
    __syncthreads();
#ifdef RACY
    data[i] = sum;  /*@store*/
#else
    out[i] = sum;
#endif
}
