// A ring of stages that tensor copies fill and products of a warpgroup read, for any number of rounds. Each macro is a fault.
#include "../../kernels/hopper.cuh"
enum { STAGES = 3 };
// Which threads free a stage, how many they are, and how many threads read it.
#ifndef FREES
#define FREES t % 32 == 0
#define COUNT 4
#endif
#ifndef READERS
#define READERS 128
#endif
extern "C" __global__ void kernel(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, float* out, int steps) {
    __shared__ alignas(128) f16 left[STAGES][64 * 16], right[STAGES][8 * 16];
    __shared__ u64 full[STAGES], empty[STAGES];
    int t = threadIdx.x;
    if (t == 0) {
        for (int s = 0; s < STAGES; s++) { init(full[s], 1); init(empty[s], COUNT); }
    }
    __syncthreads();
    int s = 0;
    u32 phase = 0;
    if (t == READERS) {
#pragma unroll 1
        for (int k = 0; k < steps; k++) {
#ifndef NO_EMPTY
            wait(empty[s], phase ^ 1);
#endif
            #ifdef EXPECTED_LATE
            if (k) expect(full[s], A_BYTES + B_BYTES);
#else
            expect(full[s], A_BYTES + B_BYTES);
#endif
            for (int half = 0; half < 2; half++) {
                tensor_load(left[s] + half * 512, a, k * 16 + half * 8, 0, full[s]);
                tensor_load(right[s] + half * 64, b, k * 16 + half * 8, blockIdx.x * 8, full[s]);
            }
            if (++s == STAGES) s = 0, phase ^= 1;
        }
    } else if (t < READERS) {
        float d[4] = {};
#pragma unroll 1
        for (int k = 0; k < steps; k++) {
#ifdef WRONG_PHASE
            wait(full[s], phase ^ 1);
#else
            wait(full[s], phase);
#endif
            wgmma_fence();
#ifdef OFF_BY_ONE
            multiply(d, descriptor(shared(left[(s + 1) % STAGES]), 1024, 128, 0), descriptor(shared(right[s]), 128, 128, 0), k);
#else
            multiply(d, descriptor(shared(left[s]), 1024, 128, 0), descriptor(shared(right[s]), 128, 128, 0), k);
#endif
            wgmma_commit();
#ifdef NO_WAIT
#elif defined(LATE_WAIT)
            wgmma_wait<1>();
#else
            wgmma_wait<0>();
#endif
#ifdef FREED_EARLY
            if (FREES) arrive(empty[(s + 1) % STAGES]);
#else
            if (FREES) arrive(empty[s]);
#endif
            if (++s == STAGES) s = 0, phase ^= 1;
        }
        wgmma_wait<0>();
        write_result(out + (blockIdx.x * (READERS / 128) + t / 128) * 512, d);
    }
}
