// A ring by NVSHMEM, twice in the same buffers: each rank puts its values into the next one, with a signal or with a flag.
#include <nvshmem.h>
extern "C" __global__ void kernel(float *data, uint64_t *signal, float *values, float *out, int rank) {
    int me = nvshmem_my_pe(), ranks = nvshmem_n_pes(), next = (me + 1) % ranks, before = (me + ranks - 1) % ranks;
    unsigned t = threadIdx.x, n = blockDim.x;
    for (unsigned round = 1; round <= 2; ++round) {
        values[t] = me + round;
#if defined(FLAG)  // a put, and a flag behind a fence
        nvshmemx_putmem_block(data, values, n * sizeof(float), next);
        if (t == 0) {
#ifndef NO_FENCE
            nvshmem_fence();
#endif
            nvshmem_uint64_p(signal, round, next);
        }
#elif defined(SIGNAL_OP)
        nvshmemx_putmem_block(data, values, n * sizeof(float), next);
        if (t == 0) {
#ifndef NO_FENCE
            nvshmem_quiet();
#endif
            nvshmemx_signal_op(signal, round, NVSHMEM_SIGNAL_SET, next);
        }
#else
        nvshmemx_putmem_signal_block(data, values, n * sizeof(float), signal, round, NVSHMEM_SIGNAL_SET, next);
#endif
        if (t == 0) {
#ifdef WRONG_SIGNAL
            nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, round - 1);
#else
            nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, round);
#endif
        }
        __syncthreads();
        out[(round - 1) * n + t] = data[t];
#ifndef NO_ANSWER  // the buffer is free: the one that puts here may put again
        __syncthreads();
        if (t == 0) {
            nvshmem_fence();
            nvshmemx_signal_op(signal + 1, round, NVSHMEM_SIGNAL_SET, before);
            nvshmem_signal_wait_until(signal + 1, NVSHMEM_CMP_GE, round);
        }
        __syncthreads();
#endif
    }
}
