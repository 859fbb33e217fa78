"""Fixes of kernels with the structure of public bug reports: what `check` names, verifies and does not say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sampled import one_in

from consan.__main__ import main

PARTIAL = """extern "C" __global__ void k(const float* x, float* y, int n) {
    __shared__ float a[128], b[128];
    int t = threadIdx.x, w = t >> 5; float acc = 0;
    for (int i = 0; i < n; i++) {
        a[t] = x[i * 128 + t];
        __syncthreads();
        if (w < 2) { b[t] = a[127 - t];
            __syncthreads();
        }
        acc += a[t ^ 64] + (w < 2 ? b[t ^ 1] : 0);
        __syncthreads();
    }
    y[t] = acc;
}
"""
ONE_BRANCH = """extern "C" __global__ void k(const float* in, float* out, int rounds) {
    __shared__ float slot;
    for (int r = 0; r < rounds; r++) {
        float mine = in[r * blockDim.x + threadIdx.x];
        __syncthreads();
        if (threadIdx.x == 0) slot = mine;
        if (threadIdx.x == 0) out[512 + r] = mine;
        else mine += slot;
        out[r * blockDim.x + threadIdx.x] = mine;
    }
}
"""
RUNNING = """extern "C" __global__ void k(const float* x, float* mean, int n) {
    __shared__ float s;
    int c = blockIdx.x;
    if (threadIdx.x == 0) { float m = 0; for (int i = 0; i < 64; i++) m += x[c * 64 + i]; s = m / 64; }
    __syncthreads();
    mean[c] = 0.9f * mean[c] + 0.1f * s;
}
"""
IN_SOME_WARPS = """extern "C" __global__ void k(const float* x, float* y, int n) {
    __shared__ float b[64];
    int t = threadIdx.x;
    if (t >= 64) return;
    b[t] = x[t];
    y[t] = b[63 - t];
}
"""
MERGED = """extern "C" __global__ void k(const float* x, float* y, int n) {
    __shared__ float b[64];
    int t = threadIdx.x;
    if (t < 64) b[t] = x[t];
    if (t < 64) y[t] = b[63 - t];
}
"""
HELPERS = """__device__ void st(float* a, float v) { *a = v; }
__device__ float ld(const float* a) { return *a; }
extern "C" __global__ void k(const float* in, float* out, int n) {
    __shared__ float s[128];
    st(&s[threadIdx.x], in[threadIdx.x]);
    out[threadIdx.x] = ld(&s[127 - threadIdx.x]);
}
"""
SIGNALLED = """#include <cuda/barrier>
extern "C" __global__ void k(const float* in, float* out, int n) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ alignas(16) float s[128 * 4];
    if (threadIdx.x == 0) init(&bar, blockDim.x);
    __syncthreads();
    cuda::memcpy_async(s + threadIdx.x * 4, in + threadIdx.x * 4, cuda::aligned_size_t<16>(16), bar);
    out[threadIdx.x] = s[threadIdx.x * 4];
    bar.arrive_and_wait();
}
"""
PRIVATE = """extern "C" __global__ void k(const float* x, float* y, int n) {
    __shared__ float sums[4];
    int t = threadIdx.x;
    sums[t / 32] = 0;
    for (int i = 0; i < n; i++) sums[t / 32] += x[t * n + i];
    y[t] = sums[t / 32];
}
"""
SCALED = """extern "C" __global__ void k(const float* x, float* y, int n) {
    int v = x[threadIdx.x] * 4;
    y[v & 3] += v * 0.5f;
}
"""
DECAYED = """extern "C" __global__ void k(const float* x, float* y, int n) { y[n] = y[n] * 0.5f + x[threadIdx.x]; }
"""
CASES = {
    "a barrier in a branch of some warps": (
        PARTIAL, "move the one that only some warps call out of its branch", "with bar.sync moved before", "no fix",
    ),
    "one thread writes, the others read": (
        ONE_BRANCH, "fix: put bar.sync 0 (__syncthreads()) after k.cu:6", "(__syncthreads()) after k.cu:6 nothing is found", "no fix",
    ),
    "a line that some warps do not pass": (
        IN_SOME_WARPS, "fix: put bar.sync 1, 64 before k.cu:6", "bar.sync 1, 64 before k.cu:6 nothing is found", "__syncthreads() after",
    ),
    "two branches of some warps that a compiler merges": (
        MERGED, "fix: put __syncthreads() after the write at k.cu:4", "(__syncthreads()) after k.cu:4 nothing is found", "bar.sync 1",
    ),
    "an update that no atomic operation is": (
        RUNNING, "fix: let one thread do the update at k.cu:6", "the update by the first thread only", "atomicAdd",
    ),
    "a sum of products": (
        SCALED, "fix: make the update one atomic operation", "with red.global.add.f32 in place of the load", "first thread only",
    ),
    "an update by a value of each thread": (
        DECAYED, "fix: let one thread do the update at k.cu:1", "no atomic operation does it", "first thread only",
    ),
    "values of their own in one element": (
        PRIVATE, "fix: give each lane an element of its own", "may follow: error[data-race] WAW: the write at k.cu:4", "__syncwarp()",
    ),
    "accesses in helpers": (
        HELPERS, "fix: put __syncthreads() after the write at k.cu:5 and before the read at k.cu:6", "verified:", "no fix",
    ),
    "a copy that an mbarrier signals": (
        SIGNALLED, "fix: move the mbarrier.test_wait.shared at k.cu:9 before the read at k.cu:8", "line 9 moved before k.cu:8", "_group",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", one_in(2, CASES, str))
def test_what_is_named(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    source, fix, more, never = CASES[name]
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text(source)
    launch = ("--grid", "1", "--block", "128", "--arg", "f32[1024]=random", "--arg", "f32[1024]=zeros", "--arg", "i32=3")
    assert main(["check", "k.cu", "--arch", "sm_80", "--device", "cpu", *launch]) == 66
    text = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert fix in text
    assert more in text
    assert never not in text


FLAG = """extern "C" __global__ void k(float* d, float* o, int* f) {
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        d[t] = t;
        __syncthreads();
        if (t == 0) {
            __threadfence_block();
            atomicExch(f, 1);
        }
    } else {
        if (t == 0) while (atomicAdd(f, 0) == 0) {}
        if (t == 0) __threadfence();
        __syncthreads();
        o[t] = d[t];
    }
}
"""
BINS = """extern "C" __global__ void k(const int* v, int* o) {
    __shared__ int bins[8];
    int t = threadIdx.x;
    if (t < 8) bins[t] = 0;
    __syncthreads();
    bins[v[t] & 7] += 1;
    __syncthreads();
    if (t < 8) o[t] = bins[t];
}
"""
MASK = """extern "C" __global__ void k(const int* x, int* o) {
    __shared__ int s[32];
    int t = threadIdx.x;
    if (t < 16) {
        s[t] = x[t];
        __syncwarp(0xff);
        o[t] = s[15 - t];
    }
}
"""
QUEUE = """extern "C" __global__ void k(int* head, int* o) {
    __shared__ int tile;
    for (;;) {
        if (threadIdx.x == 0) tile = atomicAdd(head, 1);
        __syncthreads();
        if (tile >= 16) break;
        if (threadIdx.x < 4) o[tile * 4 + threadIdx.x] = tile;
    }
}
"""
REWORDED = {
    "a scope": (FLAG, "2", ("f32[64]=zeros", "f32[64]=zeros", "i32[1]=zeros"), "+            __threadfence();"),
    "an operation": (BINS, "1", ("i32[64]=random", "i32[8]=zeros"), "+    atomicAdd(&bins[v[t] & 7], 1);"),
    "a line that reads twice": (QUEUE, "4", ("i32[1]=zeros", "i32[64]=zeros"), "+    __syncthreads();"),
    "a mask": (MASK, "1", ("i32[64]=random", "i32[64]=zeros"), "+        __syncwarp(0xffff);"),
}


@pytest.mark.parametrize(("source", "grid", "values", "line"), REWORDED.values(), ids=REWORDED)
def test_a_patch_of_one_line_is_one_of_the_source(
    source: str,
    grid: str,
    values: tuple[str, ...],
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text(source)
    launch = ("--grid", grid, "--block", "64", *(word for value in values for word in ("--arg", value)))
    assert main(["check", "k.cu", "--arch", "sm_80", "--device", "cpu", *launch, "--patch", "k.diff"]) == 66
    assert "a patch of k.cu: the kernel was checked again: clean, 0 findings" in " ".join(capsys.readouterr().out.split())
    assert [each for each in Path("k.diff").read_text().splitlines()[2:] if each.startswith("+")] == [line]
