"""What a launch does to memory: results that depend on the schedule, writes outside of the outputs, memory that nobody wrote."""

from __future__ import annotations

import pytest

from consan.audit import Verdict, table, verify
from consan.audit.rows import LaunchAnswers

SEEDS = 4
PROGRAM = """
__global__ void last(int *out) {
  __shared__ int box;
  box = 0;
  __syncthreads();
  if (threadIdx.x % 32 == 0) atomicExch(&box, threadIdx.x);
  __syncthreads();
  out[threadIdx.x + 1] = box;
}
__global__ void reads(float *out, const float *in, const float *more) { out[threadIdx.x] = in[threadIdx.x] + more[threadIdx.x]; }
__global__ void writes(const float *in) { const_cast<float *>(in)[threadIdx.x + 5] = 1; }
__global__ void beyond(float *out) { out[threadIdx.x + 384] = 1; }
__global__ void through(float **table) { table[0][threadIdx.x] = 1; }
__global__ void right(float *out, const float *in) { out[threadIdx.x] = 2 * in[threadIdx.x]; }
int main() {
  float *in, *out, *never, **table;
  int *box;
  cudaMalloc(&box, 1024); cudaMalloc(&in, 1024); cudaMalloc(&out, 1024); cudaMalloc(&never, 1024); cudaMalloc(&table, 8);
  cudaMemset(in, 1, 1024);
  cudaMemcpy(table, &in, 8, cudaMemcpyHostToDevice);
  last<<<1, 128>>>(box);
  reads<<<1, 64>>>(out, in, never);
  right<<<1, 64>>>(out, in);
  beyond<<<1, 16>>>(in);
  through<<<1, 64>>>(table);
  writes<<<1, 64>>>(in);
}
"""


@pytest.fixture(scope="module")
def verdict() -> Verdict:
    return verify(PROGRAM, budget=20, seeds=SEEDS)


@pytest.mark.parametrize(
    ("kernel", "kind", "text"),
    [
        ("last", "depends_on_schedule", "element 1 of argument 1 differs with seed "),
        ("reads", "reads_unwritten", "element 0 of argument 1 depends on memory that nobody wrote"),
        ("writes", "writes_outside", "it writes what its parameter calls const: element 64 of argument 1"),
        ("beyond", "writes_outside", "it writes memory that no argument refers to: 512 bytes past the end of argument 1 (1,024 bytes)"),
    ],
)
def test_what_is_seen_is_said_with_its_place(kernel: str, kind: str, text: str, verdict: Verdict) -> None:
    found = verdict.answers[kernel]
    assert getattr(found, kind).startswith(text), found
    assert len(found.texts) == 1, found
    assert f"note: {kernel}: {text}" in table.as_text([verdict.result])


@pytest.mark.parametrize("kernel", ["right", "through"])
def test_of_a_right_kernel_nothing_is_said(kernel: str, verdict: Verdict) -> None:
    assert verdict.answers[kernel] == LaunchAnswers(SEEDS)


def test_answers_are_no_part_of_the_verdict(verdict: Verdict) -> None:
    assert (verdict.verdict, verdict.correct) == ("clean", True)
    assert verdict.as_dict()["rows"][0]["answers"]["seeds"] == SEEDS


def test_nothing_is_asked_without_seeds() -> None:
    assert verify(PROGRAM, budget=20).answers == {}
