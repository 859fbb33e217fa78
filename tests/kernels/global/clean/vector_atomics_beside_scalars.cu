// G1, G10: atomics of vectors, pairs and single elements on the same rows. Vectors of four are in no log of values, so those of the others tell
// no order.
//
// launch: grid=4 block=32 arch=sm_90
// arg:    sums f32[16,4]=zeros
// result: sums = np.tile(np.float32([4, 8, 12, 16]), (16, 1)) * 2
extern "C" __global__ void kernel(float* sums) {
    float* row = sums + threadIdx.x % 16 * 4;
    if (blockIdx.x % 2) {
        atomicAdd((float4*)row, make_float4(1, 2, 3, 4));
    } else {
        atomicAdd(row, 1.0f);
        if (atomicAdd(row + 1, 2.0f) < 0) __trap();
        atomicAdd((float2*)(row + 2), make_float2(3, 4));
    }
}
