// A layer whose input comes from the launch before and whose weights are constant. HOW: which threads wait for that launch, and where.
extern "C" __global__ void producer(const float *in, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    out[i] = 2.0f * in[i];
}

__device__ void wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

extern "C" __global__ void residual(const float *in, const float *weights, float *out) {
    __shared__ float kept[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = 0;
    unsigned place = (unsigned)__cvta_generic_to_shared(kept + threadIdx.x);
#define COPY(from) asm volatile("cp.async.ca.shared.global [%0], [%1], 4; cp.async.commit_group;" ::"r"(place), "l"(from) : "memory")
#define COPIED asm volatile("cp.async.wait_group 0;" ::: "memory")
#if HOW == 0  // a warp waits, then a barrier
    kept[threadIdx.x] = weights[i];
    if (threadIdx.x < 32) wait();
    __syncthreads();
    x = in[i];
#elif HOW == 1  // a lane of each warp waits, then __syncwarp
    kept[threadIdx.x] = weights[i];
    if (threadIdx.x % 32 == 0) wait();
    __syncwarp();
    x = in[i];
#elif HOW == 2  // a warp waits and arrives, the other one syncs and reads
    kept[threadIdx.x] = weights[i];
    if (threadIdx.x < 32) {
        wait();
        asm volatile("bar.arrive 1, 64;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        x = in[i];
    }
#elif HOW == 3  // weights are copied before the wait
    COPY(weights + i);
    wait();
    x = in[i];
    COPIED;
#elif HOW == 4  // a prefetch reads nothing
    asm volatile("prefetch.global.L2 [%0];" ::"l"(in + i));
    kept[threadIdx.x] = weights[i];
    wait();
    x = in[i];
#elif HOW == 5  // the first warp reads for all
    if (threadIdx.x < 32) {
        wait();
        kept[threadIdx.x] = in[i], kept[threadIdx.x + 32] = in[i + 32];
    } else {
        x = weights[i];
    }
#elif HOW == 10  // only one warp waits
    kept[threadIdx.x] = weights[i];
    if (threadIdx.x < 32) wait();
    x = in[i];
#elif HOW == 11  // only one CTA waits
    kept[threadIdx.x] = weights[i];
    if (blockIdx.x == 0) wait();
    __syncthreads();
    x = in[i];
#elif HOW == 12  // the waiting warp syncs, the other one arrives and reads
    kept[threadIdx.x] = weights[i];
    if (threadIdx.x < 32) {
        wait();
        asm volatile("bar.sync 1, 64;" ::: "memory");
    } else {
        asm volatile("bar.arrive 1, 64;" ::: "memory");
    }
    x = in[i];
#elif HOW == 13  // the input is copied before the wait
    COPY(in + i);
    wait();
    x = weights[i];
    COPIED;
#elif HOW == 14  // in the second iteration
    for (int k = 0; k < 2; k++) {
        if (k == 1) wait();
        x += in[i];
    }
    kept[threadIdx.x] = weights[i];
#elif HOW == 15  // a constant load comes before the wait
    x = __ldg(in + i);
    kept[threadIdx.x] = weights[i];
    wait();
#elif HOW == 16  // a value of memory says whether
    kept[threadIdx.x] = weights[i];
    if (weights[0] > 100.0f) wait();
    x = in[i];
#endif
    __syncthreads();
    out[i] = x + kept[threadIdx.x ^ 1];
}
