// A program of the CUDA runtime with a graph that runs its body as long as a kernel says so. With the word `racy` a second kernel of the
// body does not wait for the first.
#include <cstdio>
#include <cuda_runtime.h>

#include "runtime_status.cuh"

constexpr int N = 128, ROUNDS = 3;

__global__ void add(int *values) { values[threadIdx.x] += 1; }
__global__ void decide(int *values, cudaGraphConditionalHandle condition) {
    values[threadIdx.x] *= 2;  // second
    if (threadIdx.x == 0) cudaGraphSetConditional(condition, values[0] < (2 << ROUNDS) - 2);
}

int main(int count, char **) {
    bool racy = count > 1;
    int found[N], *values;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaGraphNode_t loop, first, second;
    cudaGraphConditionalHandle condition;
    OK(cudaMalloc(&values, sizeof found));
    OK(cudaMemset(values, 0, sizeof found));
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphConditionalHandleCreate(&condition, graph, 1, cudaGraphCondAssignDefault));
    cudaGraphNodeParams params = {};
    params.type = cudaGraphNodeTypeConditional;
    params.conditional.handle = condition, params.conditional.type = cudaGraphCondTypeWhile, params.conditional.size = 1;
    OK(cudaGraphAddNode(&loop, graph, nullptr, nullptr, 0, &params));
    cudaGraph_t body = params.conditional.phGraph_out[0];
    void *of_add[] = {&values}, *of_decide[] = {&values, &condition};
    cudaKernelNodeParams kernel = {};
    kernel.func = (void *)add, kernel.gridDim = dim3(1), kernel.blockDim = dim3(N), kernel.kernelParams = of_add;
    OK(cudaGraphAddKernelNode(&first, body, nullptr, 0, &kernel));
    kernel.func = (void *)decide, kernel.kernelParams = of_decide;
    OK(cudaGraphAddKernelNode(&second, body, nullptr, 0, &kernel));
    if (!racy) OK(cudaGraphAddDependencies(body, &first, &second, nullptr, 1));
    OK(cudaGraphInstantiate(&executable, graph, 0));
    OK(cudaGraphLaunch(executable, nullptr));
    OK(cudaMemcpy(found, values, sizeof found, cudaMemcpyDeviceToHost));
    for (int each : found)
        if (!racy && each != (2 << ROUNDS) - 2) return 3;
    std::puts("right");
    return 0;
}
