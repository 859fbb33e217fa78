// C = A @ B for row-major matrices: A is n x k, B is k x n. One CTA of 64 threads computes a tile of 16 x 16 outputs, four
// of one column for each thread. The tiles of A and B come through a ring of three stages, filled by cp.async two
// iterations ahead. At the end the outputs go through the memory of the ring, so that a thread stores 16 bytes of a row.

#define STAGES 3

__device__ __forceinline__ void copy16(float* to, const float* from) {
    unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(__cvta_generic_to_global(from)) : "memory");
}

__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int PENDING>
__device__ __forceinline__ void wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int n, int k) {
    __shared__ __align__(16) float ring[STAGES][2][16][16];
    int row = threadIdx.x / 4, col = threadIdx.x % 4 * 4;  // where this thread copies, and stores its 16 bytes
    int out_row = threadIdx.x / 16 * 4, out_col = threadIdx.x % 16;  // what it computes
    const float* a_tile = a + (blockIdx.y * 16 + row) * k + col;
    const float* b_tile = b + row * n + blockIdx.x * 16 + col;
    int tiles = k / 16;

    for (int i = 0; i < STAGES - 1; i++) {
        copy16(&ring[i][0][row][col], a_tile + i * 16);
        copy16(&ring[i][1][row][col], b_tile + i * 16 * n);
        commit();
    }

    float sum[4] = {};
    for (int i = 0; i < tiles; i++) {
        wait<1>();  // this thread's part of tile i has landed; tile i + 1 may be on its way
        __syncthreads();
        int stage = i % STAGES;
        for (int j = 0; j < 16; j++) {
            for (int x = 0; x < 4; x++) sum[x] += ring[stage][0][out_row + x][j] * ring[stage][1][j][out_col];
        }
        int next = min(i + 2, tiles - 1);  // past the end: the last tile again, which spares a branch
        stage = (i + 2) % STAGES;
        copy16(&ring[stage][0][row][col], a_tile + next * 16);
        copy16(&ring[stage][1][row][col], b_tile + next * 16 * n);
        commit();
    }

    __syncthreads();
    float(*tile)[16] = ring[0][0];
    for (int x = 0; x < 4; x++) tile[out_row + x][out_col] = sum[x];
    __syncthreads();
    float4 line = *reinterpret_cast<float4*>(&tile[row][col]);
    *reinterpret_cast<float4*>(&c[(blockIdx.y * 16 + row) * n + blockIdx.x * 16 + col]) = line;
}
