__device__ float weight[4] = {1, 2, 3, 4};
extern __shared__ float tile[];
static __device__ int called;
__device__ float value_of(int t) {
    atomicAdd(&called, 1);
    return tile[t];
}
extern "C" __global__ void counted(int *out) { *out = called; }
