// Sums of columns: warp 4 brings rows into a ring of stages, warps 0 to 3 add them up. Each stage has two mbarriers: `full` says
// that its row is there, `empty` that it may be overwritten.
#define COLUMNS 128
#define STAGES 3

__device__ __forceinline__ unsigned address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

__device__ __forceinline__ void init(unsigned long long* barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(barrier)), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void arrive(unsigned long long* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(barrier)) : "memory");
}

__device__ __forceinline__ void wait(unsigned long long* barrier, unsigned parity) {
    asm volatile(
        "{ .reg .pred done;\n"
        "AGAIN: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra AGAIN; }" ::"r"(address(barrier)), "r"(parity) : "memory");
}

__device__ __forceinline__ void load(float* row, const float* from, unsigned long long* full) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(full)), "r"(COLUMNS * 4) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(address(row)),
                 "l"(from), "r"(COLUMNS * 4), "r"(address(full)) : "memory");
}

extern "C" __global__ void sums(const float* matrix, float* result, int rows) {
    __shared__ alignas(128) float ring[STAGES][COLUMNS];
    __shared__ unsigned long long full[STAGES], empty[STAGES];
    const int thread = threadIdx.x;
    if (thread == 0)
        for (int stage = 0; stage < STAGES; stage++) {
            init(&full[stage], 1);
            init(&empty[stage], COLUMNS);
        }
    __syncthreads();
    if (thread == COLUMNS) {
        for (int row = 0; row < rows; row++) {
            const int stage = row % STAGES, round = row / STAGES;
            if (round > 0) wait(&empty[stage], (round - 1) & 1);
            load(ring[stage], matrix + row * COLUMNS, &full[stage]);
        }
    } else if (thread < COLUMNS) {
        float sum = 0;
        for (int row = 0; row < rows; row++) {
            const int stage = row % STAGES, round = row / STAGES;
            wait(&full[stage], round & 1);
            sum += ring[stage][thread];
            arrive(&empty[stage]);
        }
        result[thread] = sum;
    }
}
