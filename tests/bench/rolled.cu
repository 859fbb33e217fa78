// A loop with one shared access an iteration, at addresses that never repeat: the worst case that the recording engine was designed against.
extern "C" __global__ void rolled(const int* start, int* out, int n) {
    __shared__ int table[8192];
    unsigned at = start[blockIdx.x * blockDim.x + threadIdx.x];
    for (int k = threadIdx.x; k < 8192; k += blockDim.x) table[k] = k * 7;
    __syncthreads();
    int sum = 0;
#pragma unroll 1
    for (int i = 0; i < n; ++i) {
        sum += table[at & 8191];
        at = at * 1664525u + 1013904223u;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
