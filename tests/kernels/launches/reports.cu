// Programmatic dependents of public reports, in small. RACY: as reported. A trigger publishes nothing, so each thread that reads what the launch
// before has written must be behind a wait (R-GM14).
__device__ void trigger() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ void wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
#ifdef RACY
#define WAIT_OF_REPORT
#else
#define WAIT_OF_REPORT wait()
#endif

// What comes before: values, and a scale for each warp of them. The trigger comes before the stores.
extern "C" __global__ void quantize(const float *in, float *values, float *scales) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    trigger();
    values[i] = 0.5f * in[i];
    if (threadIdx.x % 32 == 0) scales[i / 32] = 4.0f;
}

// TensorRT-LLM 14668, cutlass 3279: the warp that loads the scales does not wait, all others do.
extern "C" __global__ void scaled(const float *values, const float *scales, float *out) {
    __shared__ float scale[2];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x < 32) {
        WAIT_OF_REPORT;
        if (threadIdx.x < 2) scale[threadIdx.x] = scales[blockIdx.x * 2 + threadIdx.x];
    } else {
        wait();
    }
    __syncthreads();
    if (threadIdx.x < 32) wait();
    out[i] = values[i] * scale[threadIdx.x / 32];
}

// flash-attention 2498: a load warp copies what the launch before has computed, ahead of the wait.
extern "C" __global__ void loaded(const float *values, const float *scales, float *out) {
    __shared__ float kept[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x < 32) {
        WAIT_OF_REPORT;
        for (int k = threadIdx.x; k < 64; k += 32) {
            unsigned place = (unsigned)__cvta_generic_to_shared(kept + k);
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(place), "l"(values + blockIdx.x * 64 + k) : "memory");
        }
        asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");
    }
    __syncthreads();
    wait();
    out[i] = kept[threadIdx.x] * scales[i / 32];
}

// cutlass 2760: launched as a dependent, and no thread waits.
extern "C" __global__ void product(const float *values, const float *scales, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    WAIT_OF_REPORT;
    out[i] = values[i] * scales[i / 32];
}

// cccl 5456: the bounds of a tile are read ahead of the wait, what lies between them behind it.
extern "C" __global__ void merged(const float *values, const float *scales, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef RACY
    float scale = scales[i / 32];
    wait();
#else
    wait();
    float scale = scales[i / 32];
#endif
    out[i] = values[i] * scale;
}

// cutlass 2962: a thread reads the first shape while it makes its scheduler, ahead of the wait.
extern "C" __global__ void scheduled(const float *values, const float *scales, float *out) {
    __shared__ float first;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) {
        WAIT_OF_REPORT;
        first = scales[0];
    }
    wait();
    __syncthreads();
    out[i] = values[i] * first;
}

// llama.cpp 23690: a step of a Hadamard transform, launched as a dependent as all others are, and without their wait.
extern "C" __global__ void transformed(const float *values, const float *scales, float *out) {
    __shared__ float kept[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    WAIT_OF_REPORT;
    kept[threadIdx.x] = values[i];
    __syncthreads();
    out[i] = 2.0f * (kept[threadIdx.x] + kept[threadIdx.x ^ 1]);
}

// quack 206: the warps that load and schedule wait, those that multiply and store read the bounds of a group by themselves, ahead of any wait.
extern "C" __global__ void grouped(const float *values, const float *scales, float *out) {
    __shared__ float kept[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x, end;
    if (threadIdx.x < 32) {
        wait();
        for (int k = threadIdx.x; k < 64; k += 32) kept[k] = values[blockIdx.x * 64 + k];
        end = (int)scales[blockIdx.x * 2];
    } else {
        WAIT_OF_REPORT;
        end = (int)scales[blockIdx.x * 2];
    }
    __syncthreads();
    wait();
    out[i] = kept[threadIdx.x] * end;
}
