// Works whose global memory is checked (bench_global.py), one in each module. All are free of races: flags and shared words are strong.
#if defined(WORK_look_back)
#include <cub/agent/single_pass_scan_operators.cuh>
#include <cub/block/block_scan.cuh>

// A scan by decoupled look-back, of CUB's own parts: 4 values a thread, one tile a CTA.
extern "C" __global__ void look_back(const int4* in, int4* out, uint2* tiles) {
    using State = cub::ScanTileState<int>;
    using Sum = ::cuda::std::plus<>;
    using Scan = cub::BlockScan<int, 256>;
    using Prefix = cub::TilePrefixCallbackOp<int, Sum, State>;
    __shared__ union { typename Scan::TempStorage scan; } storage;
    __shared__ typename Prefix::TempStorage shared_prefix;
    State state;
    state.d_tile_descriptors = tiles;
    int at = blockIdx.x * 256 + threadIdx.x, sum;
    int4 value = in[at];
    int items[4] = {value.x, value.y, value.z, value.w};
    if (blockIdx.x == 0) {
        Scan(storage.scan).InclusiveScan(items, items, Sum(), sum);
        if (threadIdx.x == 0) state.SetInclusive(0, sum);
    } else {
        Prefix prefix(state, shared_prefix, Sum());
        Scan(storage.scan).InclusiveScan(items, items, Sum(), prefix);
    }
    out[at] = make_int4(items[0], items[1], items[2], items[3]);
}
#elif defined(WORK_copy16)
extern "C" __global__ void copy16(const float4* in, float4* out) {
    long long i = blockIdx.x * 256ll + threadIdx.x;
    out[i] = in[i];
}
#elif defined(WORK_scale4)
extern "C" __global__ void scale4(const float* in, float* out) {
    long long i = blockIdx.x * 256ll + threadIdx.x;
    out[i] = 2 * in[i];
}
#elif defined(WORK_histogram)
extern "C" __global__ void histogram(const unsigned* in, unsigned* counts, int n) {
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) atomicAdd(&counts[in[i] & 4095], 1);
}
#elif defined(WORK_split_k) || defined(WORK_stream_k)
// A 32x32 tile of A x B over the k of one CTA in z.
__device__ __forceinline__ float product(const float* a, const float* b, int n, int from, int to) {
    __shared__ float left[32][33], right[32][33];
    int x = threadIdx.x, y = threadIdx.y;
    float sum = 0;
    for (int k = from; k < to; k += 32) {
        left[y][x] = a[(blockIdx.y * 32 + y) * n + k + x];
        right[y][x] = b[(k + y) * n + blockIdx.x * 32 + x];
        __syncthreads();
        for (int i = 0; i < 32; i++) sum += left[y][i] * right[i][x];
        __syncthreads();
    }
    return sum;
}

#ifdef WORK_split_k
// Parts go to a workspace; the last CTA of a tile adds them.
extern "C" __global__ void split_k(const float* a, const float* b, float* c, float* parts, unsigned* done, int n) {
    __shared__ bool last;
    int z = blockIdx.z, splits = gridDim.z, tile = blockIdx.y * gridDim.x + blockIdx.x, own = threadIdx.y * 32 + threadIdx.x;
    float* part = parts + tile * splits * 1024;
    part[z * 1024 + own] = product(a, b, n, n / splits * z, n / splits * (z + 1));
    __threadfence();
    __syncthreads();
    if (own == 0) last = atomicAdd(&done[tile], 1) == splits - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    float sum = 0;
    for (int i = 0; i < splits; i++) sum += part[i * 1024 + own];
    c[(blockIdx.y * 32 + threadIdx.y) * n + blockIdx.x * 32 + threadIdx.x] = sum;
}
#else
// CTAs of a tile add to its part in turn, as stream-K does: an acquire by thread 0, a release by thread 0.
extern "C" __global__ void stream_k(const float* a, const float* b, float* c, float* parts, unsigned* turn, int n) {
    int z = blockIdx.z, splits = gridDim.z, tile = blockIdx.y * gridDim.x + blockIdx.x, own = threadIdx.y * 32 + threadIdx.x;
    float sum = product(a, b, n, n / splits * z, n / splits * (z + 1));
    unsigned seen = 0;
    if (z && own == 0)
        while (seen != z) asm volatile("ld.global.acquire.gpu.b32 %0, [%1];" : "=r"(seen) : "l"(turn + tile) : "memory");
    __syncthreads();
    if (z) sum += parts[tile * 1024 + own];
    if (z == splits - 1) {
        c[(blockIdx.y * 32 + threadIdx.y) * n + blockIdx.x * 32 + threadIdx.x] = sum;
        return;
    }
    parts[tile * 1024 + own] = sum;
    __syncthreads();
    if (own == 0) asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(turn + tile) : "memory");
}
#endif
#elif defined(WORK_bfs)
// A level of a breadth-first search: topology-driven, push.
extern "C" __global__ void bfs(const int* rows, const int* columns, int* distance, int level, int n) {
    int v = blockIdx.x * 256 + threadIdx.x;
    if (v >= n || *(volatile int*)&distance[v] != level) return;
    for (int e = rows[v]; e < rows[v + 1]; e++) atomicMin(&distance[columns[e]], level + 1);
}
#elif defined(WORK_components)
// A round of connected components: each vertex pushes its label.
extern "C" __global__ void components(const int* rows, const int* columns, int* label, int n) {
    int v = blockIdx.x * 256 + threadIdx.x;
    if (v >= n) return;
    int own = *(volatile int*)&label[v];
    for (int e = rows[v]; e < rows[v + 1]; e++) atomicMin(&label[columns[e]], own);
}
#endif
