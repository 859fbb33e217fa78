"""Hazards on registers, which are in the text: reported for the kernels that were launched, counted by launch."""

from __future__ import annotations

from pathlib import Path

import pytest

from consan.__main__ import main
from consan.reports.model import Report
from consan.session.modules.prepared import Prepared
from consan.session.planning.options import SessionOptions
from consan.session.session import Session
from consan.toolchain.nvrtc import compile_ptx

SOURCE = """
#define PRODUCT(d) \\
    asm volatile("{.reg .pred p;\\nsetp.ne.b32 p, 0, 0;\\n" \\
                 "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %4, p, 1, 1, 0, 0;}" \\
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(descriptor))
#define FENCE() asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define COMMIT() asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WAIT() asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory")
template <bool WAITS> __device__ void multiply(float* out) {
    __shared__ alignas(128) unsigned operand[512];
    for (int i = threadIdx.x; i < 512; i += 128) operand[i] = 0;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    unsigned long long address = (unsigned)__cvta_generic_to_shared(operand);
    unsigned long long descriptor = address >> 4 | 8ull << 16 | 16ull << 32;
    float d[4];
    FENCE();
    PRODUCT(d);
    COMMIT();
    if (WAITS) WAIT();
    out[threadIdx.x] = d[0];
    if (!WAITS) WAIT();
}
extern "C" __global__ void early(float* out) { multiply<false>(out); }
extern "C" __global__ void waits(float* out) { multiply<true>(out); }
"""


@pytest.fixture(scope="module")
def ptx() -> str:
    return compile_ptx(SOURCE, name="k.cu", arch="sm_90a").ptx


def launched(ptx: str, *entries: str) -> Report:
    session = Session(SessionOptions(device="cpu"))
    prepared: Prepared = session.prepare(ptx, name="k.cu")
    for entry in entries:
        session.launch(prepared, entry, (1, 1, 1), (128, 1, 1), [session.backend.alloc(512).to_bytes(8, "little")])
    return session.report()


def test_a_hazard_counts_the_launches_and_is_in_no_cta(ptx: str) -> None:
    report = launched(ptx, "early", "early", "waits")
    (finding,) = report.findings
    assert (report.verdict, finding.kind, finding.hazard, finding.kernel) == ("violations", "register-hazard", "RAW", "early")
    assert (finding.count, finding.ctas) == (2, 0)
    assert [SOURCE.splitlines()[access.line - 1].strip() for access in finding.pair] == ["PRODUCT(d);", "out[threadIdx.x] = d[0];"]
    assert "in the text of the kernel, launched 2 times" in str(report)


@pytest.mark.parametrize("entries", [(), ("waits",)])
def test_a_kernel_that_was_not_launched_has_none(ptx: str, entries: tuple[str, ...]) -> None:
    report = launched(ptx, *entries)
    assert report.findings == ()
    assert report.verdict == ("clean" if entries else "incomplete")


def test_a_debug_build_is_not_called_clean(ptx: str) -> None:
    report = launched(ptx.replace(".target sm_90a", ".target sm_90a, debug"), "waits")
    assert report.verdict == "incomplete"
    assert report.incomplete == ("waits is a debug build: the registers of its matrix products were not checked",)


def test_the_ptx_command_lists_them(ptx: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "k.ptx"
    file.write_text(ptx)
    for view in ([], ["--show", "hazards"]):
        assert main(["ptx", str(file), *view]) == 0
        hazards = [line for line in capsys.readouterr().out.splitlines() if line.startswith("register-hazard RAW")]
        assert len(hazards) == 1
        assert "early" in hazards[0]
