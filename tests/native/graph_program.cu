// A program of the CUDA runtime that captures a graph of two streams. With the word `racy` the second kernel does not wait for the first.
#include <cstdio>
#include <cuda_runtime.h>

#include "runtime_status.cuh"

constexpr int N = 128, BYTES = N * sizeof(int);

__global__ void add(int *values, int more) { values[threadIdx.x] += more; }
__global__ void scale(int *values, int by) { values[threadIdx.x] *= by; }  // second

int main(int count, char **) {
    bool racy = count > 1;
    int given[N] = {}, found[N], *values, *shared, seven = 7;
    cudaStream_t stream, other;
    cudaEvent_t forked, joined;
    cudaGraph_t graph, by_hand;
    cudaGraphExec_t executable;
    cudaGraphNode_t filled, added, copied;
    cudaStreamCaptureStatus status;
    OK(cudaStreamCreate(&stream));
    OK(cudaStreamCreate(&other));
    OK(cudaEventCreate(&forked));
    OK(cudaEventCreate(&joined));
    OK(cudaMalloc(&values, BYTES));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    OK(cudaStreamIsCapturing(stream, &status));
    if (status != cudaStreamCaptureStatusActive) return 2;
    OK(cudaMemcpyAsync(values, given, BYTES, cudaMemcpyHostToDevice, stream));
    OK(cudaEventRecord(forked, stream));
    OK(cudaStreamWaitEvent(other, forked, 0));
    add<<<1, N, 0, other>>>(values, 3);
    OK(cudaGetLastError());
    OK(cudaEventRecord(joined, other));
    if (!racy) OK(cudaStreamWaitEvent(stream, joined, 0));
    scale<<<1, N, 0, stream>>>(values, 2);
    OK(cudaGetLastError());
    OK(cudaStreamWaitEvent(stream, joined, 0));
    OK(cudaMemcpyAsync(found, values, BYTES, cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphInstantiate(&executable, graph, 0));
    for (int round = 1; round <= 2; ++round) {
        for (int at = 0; at < N; ++at) given[at] = at * round, found[at] = -1;
        OK(cudaGraphLaunch(executable, stream));
        OK(cudaStreamSynchronize(stream));
        for (int at = 0; at < N; ++at)
            if (!racy && found[at] != (at * round + 3) * 2) return 3;
    }
    OK(cudaGraphCreate(&by_hand, 0));
    cudaMemsetParams zeros = {};
    zeros.dst = values, zeros.elementSize = sizeof(int), zeros.width = N, zeros.height = 1;
    OK(cudaGraphAddMemsetNode(&filled, by_hand, nullptr, 0, &zeros));
    void *params[] = {&values, &seven};
    cudaKernelNodeParams kernel = {};
    kernel.func = (void *)add, kernel.gridDim = dim3(1), kernel.blockDim = dim3(N), kernel.kernelParams = params;
    OK(cudaGraphAddKernelNode(&added, by_hand, &filled, 1, &kernel));
    OK(cudaGraphAddMemcpyNode1D(&copied, by_hand, &added, 1, found, values, BYTES, cudaMemcpyDeviceToHost));
    OK(cudaGraphInstantiate(&executable, by_hand, 0));
    OK(cudaGraphLaunch(executable, stream));
    OK(cudaStreamSynchronize(stream));
    for (int each : found)
        if (each != seven) return 4;
    OK(cudaMallocManaged(&shared, BYTES));
    for (int at = 0; at < N; ++at) shared[at] = at;
    add<<<1, N, 0, stream>>>(shared, seven);
    OK(cudaStreamSynchronize(stream));
    for (int at = 0; at < N; ++at)
        if (shared[at] != at + seven) return 5;
    OK(cudaFree(shared));
    OK(cudaGraphExecDestroy(executable));
    OK(cudaGraphDestroy(by_hand));
    std::puts("right");
    return 0;
}
