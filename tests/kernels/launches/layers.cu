// Two layers, as programmatic dependent launches have them. RACY: the second one reads its input before the wait, only its weights may be.
extern "C" __global__ void first_layer(const float *in, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    out[i] = 2.0f * in[i];
}

extern "C" __global__ void second_layer(const float *in, const float *weights, float *out) {
    __shared__ float kept[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    kept[threadIdx.x] = weights[i];
#ifdef RACY
    float x = in[i];
    asm volatile("griddepcontrol.wait;" ::: "memory");
#else
    if (threadIdx.x == 0) asm volatile("griddepcontrol.wait;" ::: "memory");
    __syncthreads();
    float x = in[i];
#endif
    out[i] = x * kept[threadIdx.x];
}

// The third one writes what the first one reads: behind its own wait this is in order only if the second one has waited too.
extern "C" __global__ void third_layer(float *first_input) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    asm volatile("griddepcontrol.wait;" ::: "memory");
    first_input[i] = 0.0f;
}

extern "C" __global__ void no_wait(float *other) {
    other[blockIdx.x * blockDim.x + threadIdx.x] = 1.0f;
}

// Sums that two streams add to, and one that reads them.
extern "C" __global__ void add(int *sums) {
#ifdef RACY
    atomicAdd_block(&sums[threadIdx.x], 1);
#else
    atomicAdd(&sums[threadIdx.x], 1);
#endif
}

extern "C" __global__ void publish(int *data, int *flag) {
    data[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0) asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
}

extern "C" __global__ void consume(const int *data, int *flag, int *out) {
    int seen = 0;
    if (threadIdx.x == 0) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    if (__syncthreads_or(seen)) out[threadIdx.x] = data[threadIdx.x];
}
