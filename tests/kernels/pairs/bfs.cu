// Level-synchronous BFS on a ring graph with chords: two frontiers in global memory, a barrier of the grid per level.
// launch: grid=4 block=32
// arg: dist i32[128]=zeros
// arg: queue i32[2,128]=zeros
// arg: size i32[3]=zeros
// arg: bar u32[1]=zeros
// result: dist = np.minimum(np.minimum(np.arange(128), 128 - np.arange(128)), 64)[:128] + 1
// bug 1: data-race warn no barrier between the levels' reset and the appends
// bug 2: data-race warn visited test and set without CAS
// bug 3: global-race the size of the next frontier is read before the barrier
// bug 4: data-race|global-race the queue is appended without atomics
__device__ void grid_barrier(unsigned* bar, unsigned& round) {
    __syncthreads();
    if (threadIdx.x == 0) {
        round += gridDim.x;
        __threadfence();
        atomicAdd(bar, 1u);
        while (atomicAdd(bar, 0u) < round) {}
        __threadfence();
    }
    __syncthreads();
}
extern "C" __global__ void kernel(int* dist, int* queue, int* size, unsigned* bar) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    unsigned round = 0;
    if (i == 0) dist[0] = 1, queue[0] = 0, size[0] = 1;
    grid_barrier(bar, round);
    for (int level = 0;; level++) {
        int now = level % 3, next = (level + 1) % 3, after = (level + 2) % 3;
        int count = size[now];
        if (count == 0) break;
        if (i == 0) size[after] = 0;
#if BUG == 1
        if (i == 0) size[next] = 0;
#endif
        for (int q = i; q < count; q += n) {
            int v = queue[(level & 1) * 128 + q];
            for (int e = -1; e <= 1; e += 2) {
                int u = (v + e + 128) % 128;
#if BUG == 2
                if (dist[u] == 0) {
                    dist[u] = level + 2;
#else
                if (atomicCAS(&dist[u], 0, level + 2) == 0) {
#endif
#if BUG == 4
                    int at = size[next];
                    size[next] = at + 1;
#else
                    int at = atomicAdd(&size[next], 1);
#endif
                    if (at < 128) queue[(~level & 1) * 128 + at] = u;
                }
            }
        }
#if BUG == 3
        if (size[next] == 0 && level > 100) break;
#endif
        grid_barrier(bar, round);
    }
}
