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

// All threads read the same four words, by one instruction.
extern "C" __global__ void look_up(const float *table, float *out) {
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < 4; ++k) sum += table[k];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
