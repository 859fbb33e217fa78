"""Graphs of native programs on a GPU that are not captured."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_native import build, run

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]

NODE = """
#include <cstdio>
__global__ void turned(int *out) {
    __shared__ int tile[64];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[64 * blockIdx.x + threadIdx.x] = tile[63 - threadIdx.x];
}
int main() {
    int *out, found = 0;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t node;
    cudaMalloc(&out, 4 * 256);
    cudaGraphCreate(&graph, 0);
    void *arguments[] = {&out};
    cudaKernelNodeParams params = {};
    params.func = (void *)turned, params.gridDim = dim3(4), params.blockDim = dim3(64), params.kernelParams = arguments;
    cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params);
    if (cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess) return 1;
    for (int i = 0; i < 5; i++) cudaGraphLaunch(exec, 0);
    cudaMemcpy(&found, out + 192, 4, cudaMemcpyDeviceToHost);
    return found == 63 ? 7 : 2;
}
"""


def test_nodes_that_the_program_adds_run_as_they_are(tmp_path: Path) -> None:
    status, _, report = run(build(tmp_path, source=NODE))
    assert (status, report["verdict"], report["exit"]) == (7, "incomplete", 7)
    assert any("5 launches of" in str(why) and "node by node" in str(why) for why in report["incomplete"]), report
