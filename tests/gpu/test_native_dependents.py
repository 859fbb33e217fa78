"""Programmatic dependent launches of native programs on a GPU: in a stream, and as nodes of a graph."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_native import build, launches

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]

# RACY: the second kernel reads what the first one writes before it waits. LATE: a kernel between them does not wait.
PROGRAM = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>
#define CHECK(call) do { cudaError_t e = call; if (e) { std::printf("%s: %s\n", #call, cudaGetErrorString(e)); std::exit(3); } } while (0)
#define TRIGGER asm volatile("griddepcontrol.launch_dependents;" ::: "memory")
#define WAIT asm volatile("griddepcontrol.wait;" ::: "memory")
__global__ void first(const int *in, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    TRIGGER;
    out[i] = 2 * in[i];
}
__global__ void second(const int *in, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef RACY
    int x = in[i];
    WAIT;
#else
    WAIT;
    int x = in[i];
#endif
    out[i] = x + 1;
}
__global__ void between(int *other) {
    TRIGGER;
#ifndef LATE
    WAIT;
#endif
    other[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}
template <class... Formal, class... Given> void dependent(void (*kernel)(Formal...), cudaStream_t stream, Given... given) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(4), config.blockDim = dim3(64), config.stream = stream, config.attrs = &attribute, config.numAttrs = 1;
    CHECK(cudaLaunchKernelEx(&config, kernel, Formal(given)...));
}
int main(int count, char **words) {
    int *in, *middle, *out, *other, found[256];
    cudaStream_t stream;
    CHECK(cudaMalloc(&in, 1024)); CHECK(cudaMalloc(&middle, 1024)); CHECK(cudaMalloc(&out, 1024)); CHECK(cudaMalloc(&other, 1024));
    CHECK(cudaMemset(in, 0, 1024));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaDeviceSynchronize());
    bool three = count > 2 && !std::strcmp(words[2], "three");
    auto pair = [&] {
        first<<<4, 64, 0, stream>>>(in, middle);
        if (three) dependent(between, stream, other);
        dependent(second, stream, (const int *)middle, out);
    };
    if (std::strcmp(words[1], "graph")) pair();
    if (std::strcmp(words[1], "launches")) {
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        CHECK(cudaStreamSynchronize(stream));
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        pair();
        CHECK(cudaStreamEndCapture(stream, &graph));
        CHECK(cudaGraphInstantiate(&exec, graph, 0));
        for (int i = 0; i < 3; i++) CHECK(cudaGraphLaunch(exec, stream));
    }
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(found, out, 1024, cudaMemcpyDeviceToHost));
    return 0;
}
"""


def ran(folder: Path, flags: tuple[str, ...], *words: str) -> tuple[int, dict[str, Any]]:
    build(folder, *flags, source=PROGRAM)
    command = [sys.executable, "-m", "consan", "run", "--device", "gpu", "-o", "report.json", "./app", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=280, check=False)
    assert (folder / "report.json").exists(), done.stdout + done.stderr
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    print(done.returncode, report["verdict"], report["incomplete"], [(each["kind"], each["situation"]) for each in report["findings"]])
    return done.returncode, report


@pytest.mark.parametrize("mode", ["launches", "both"])
@pytest.mark.parametrize(
    ("flags", "words", "situation"),
    [((), (), ""), (("-DRACY",), (), "no-grid-wait"), ((), ("three",), ""), (("-DLATE",), ("three",), "no-chained-wait")],
    ids=["right", "racy", "three right", "three racy"],
)
def test_dependents_in_a_stream(tmp_path: Path, flags: tuple[str, ...], words: tuple[str, ...], situation: str, mode: str) -> None:
    """`both`: and then in a graph, too, whose nodes are compared no more than any other graph's."""
    status, report = ran(tmp_path, flags, mode, *words)
    assert {each["situation"] for each in report["findings"]} == ({situation} if situation else set()), report
    assert status == (66 if situation else 0), report["incomplete"]
    assert launches(report)["second"] >= 1


@pytest.mark.parametrize("flags", [(), ("-DRACY",), ("-DLATE",)], ids=" ".join)
def test_dependents_in_a_graph_alone(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """Nodes of a graph are not recorded: a pair that was compared nowhere else is no clean one."""
    words = ("three",) if "-DLATE" in flags else ()
    status, report = ran(tmp_path, flags, "graph", *words)
    if status != 66 or not flags:
        assert (status, report["verdict"]) == (67, "incomplete"), report
        assert any("it was not compared with what may run at the same time" in why for why in report["incomplete"]), report["incomplete"]
