// A lock in shared memory that functions take and free, between warps; what it guards is in global memory.
//
// launch: grid=2 block=128
// arg:    sum f32[2]=zeros
// expect: data-race @update severity=error
// result: sum = np.float32([4, 4])
__device__ __noinline__ void take(unsigned* lock) {
    while (atomicExch(lock, 1)) __nanosleep(20);
    __threadfence_block();
}
__device__ __noinline__ void give(unsigned* lock) {
#ifndef RACY
    __threadfence_block();
#endif
    atomicExch(lock, 0);
}
extern "C" __global__ void kernel(float* sum) {
    __shared__ unsigned lock;
    if (threadIdx.x == 0) lock = 0;
    __syncthreads();
    if (threadIdx.x % 32) return;
    take(&lock);
    asm volatile("{.reg .f32 x; ld.global.f32 x, [%0]; add.f32 x, x, 0f3F800000; st.global.f32 [%0], x;}" ::"l"(sum + blockIdx.x) : "memory");  /*@update*/
    give(&lock);
}
