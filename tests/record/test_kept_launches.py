"""Launches of a GPU that the virtual machine makes again from their inputs: other schedules, and texts without optimisation.

The virtual machine stands in for the GPU, too.
"""

from __future__ import annotations

from typing import Any

import pytest
from framework_support import Framework

from consan.reports.model import Report
from consan.session import kept_launches
from consan.session.without_optimisation import CudaText
from consan.toolchain.nvrtc import compile_ptx

FILE = "weights.cu"
# The compiler removes the load of a neighbour, whose weight is 0: `from` has zeros in both texts.
WEIGHTS = """
extern "C" __global__ void weighs(int* out, int* from, int) {
    __shared__ int line[64];
    int t = threadIdx.x;
    line[t] = t + from[t] + out[blockIdx.x * 64 + t];
    __syncthreads();
    int sum = line[t] + 0 * line[(t + 32) % 64];
    BARRIER
    line[t] = sum + 1;
    __syncthreads();
    out[blockIdx.x * 64 + t] = line[t];
}
"""
# The flag is set first. Where it is not, thread 0 reads what another thread writes.
POLLS = """
extern "C" __global__ void polls(int* out, int* from, int) {
    __shared__ int value[2], flag;
    if (threadIdx.x == 0) flag = value[0] = value[1] = 0;
    __syncthreads();
    if (threadIdx.x == 32) { atomicExch(&flag, 1); value[0] = from[0]; }
    if (threadIdx.x == 0 && atomicAdd(&flag, 0) == 0) {
        int found;
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(found) : "r"((unsigned)__cvta_generic_to_shared(value + OTHER)) : "memory");
        out[blockIdx.x] = found;
    }
}
"""


def racy(source: str) -> str:
    return source.replace("BARRIER", "")


def fixed(source: str) -> str:
    return source.replace("BARRIER", "__syncthreads();")


def compiled(text: str, optimised: bool) -> str:
    return compile_ptx(text, name=FILE, arch="sm_90a", optimised=optimised).ptx


def framework(source: str, **options: Any) -> Framework:
    """A GPU whose program has compiled a source."""
    made = Framework(source, **options)
    made.backend.write(made.out, bytes(4 * 512))
    made.session.unoptimised.texts[made.prepared.plain] = CudaText(FILE, 1, source, compiled)
    return made


def ran(source: str, entry: str = "weighs", *, times: int = 1, **options: Any) -> tuple[Report, Framework]:
    made = framework(source, **options)
    for _ in range(times):
        made.launch(entry)
        made.backend.advance(0)
    return made.report(), made


def test_a_race_that_the_compiler_removes_is_a_warning_behind_a_gpu() -> None:
    report, _ = ran(racy(WEIGHTS), times=3)
    (finding,) = report.findings
    assert (finding.kind, finding.severity, finding.unoptimized, report.verdict) == ("data-race", "warning", True, "clean")
    assert {access.line for access in finding.pair} == {7, 9}
    assert finding.verified is not None


def test_the_repaired_one_has_none_and_the_program_its_own_results() -> None:
    report, made = ran(fixed(WEIGHTS), times=2)
    assert (report.findings, report.verdict) == ((), "clean")
    assert made.backend.read(made.out, 8) == (2).to_bytes(4, "little") + (4).to_bytes(4, "little")


def test_each_report_has_what_was_shown_until_a_fresh_start() -> None:
    report, made = ran(racy(WEIGHTS))
    assert made.report().findings == report.findings
    taken = made.session.take()
    assert taken is not None
    assert taken.findings == report.findings
    made.launch("weighs")
    made.backend.advance(0)
    assert made.report().findings == ()


def test_an_interruption_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    made = framework(racy(WEIGHTS))
    made.launch("weighs")
    made.backend.advance(0)
    monkeypatch.setattr(kept_launches, "made_again", interrupted)
    with pytest.raises(KeyboardInterrupt):
        made.report()
    assert "weighs: not looked at on the virtual machine: interrupted by Ctrl-C" in made.report().notes


def test_nothing_is_kept_where_nobody_wants_it() -> None:
    made = framework(racy(WEIGHTS), unoptimized="off")
    made.launch("weighs")
    assert made.session.frameworks.kept.kept == []


@pytest.mark.parametrize("explore", [2.0, None])
def test_a_race_of_another_schedule_is_found_behind_a_gpu_on_request(explore: float | None) -> None:
    report, _ = ran(POLLS.replace("OTHER", "0"), "polls", unoptimized="off", explore=explore)
    assert [(each.kind, each.seed is not None) for each in report.findings] == ([("data-race", True)] if explore else [])
    assert report.verdict == ("violations" if explore else "clean")


def test_a_kernel_without_a_race_is_clean_in_other_schedules_behind_a_gpu() -> None:
    report, _ = ran(POLLS.replace("OTHER", "1"), "polls", unoptimized="off", explore=2.0)
    assert (report.findings, report.verdict) == ((), "clean")
    (kernel,) = report.kernels
    assert kernel.schedules is not None
    assert kernel.schedules.explored > 1


WHY_NOT = {
    "its parameters are not known": lambda made: setattr(made, "knows", False),
    "its memory is too large to be kept": lambda made: setattr(kept_launches, "MOST_MEMORY", 4),
    "the memory of other launches is kept": lambda made: setattr(kept_launches, "MOST_KEPT", 4),
    "the launch is large for the virtual machine": lambda made: setattr(kept_launches, "MOST_THREADS", 4),
    "earlier work has not ended": lambda made: setattr(made.backend, "synchronize", lambda timeout=None: False),
}


@pytest.mark.parametrize("why", WHY_NOT)
def test_what_is_not_kept_is_named(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MOST_MEMORY", "MOST_KEPT", "MOST_THREADS"):  # brought back afterwards
        monkeypatch.setattr(kept_launches, name, getattr(kept_launches, name))
    made = framework(racy(WEIGHTS))
    synchronize = made.backend.synchronize
    WHY_NOT[why](made)
    made.launch("weighs")
    made.backend.synchronize = synchronize  # type: ignore[method-assign]
    made.backend.advance(0)
    report = made.report()
    assert report.findings == ()
    assert f"weighs: not looked at on the virtual machine: {why}" in report.notes


def test_a_module_with_variables_is_not_kept() -> None:
    report, _ = ran(racy("__device__ int factor;" + WEIGHTS.replace("t + from", "factor + t + from")))
    assert any("variables" in note for note in report.notes)


def test_a_launch_with_an_error_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_launches, "made_again", lambda *_: pytest.fail("repair that one first"))
    report, _ = ran(racy(WEIGHTS.replace("0 * line", "line")))
    assert report.verdict == "violations"


def test_an_address_in_memory_shows_nothing() -> None:
    source = WEIGHTS.replace("t + from[t]", "*((int**)from)[0]")
    made = framework(fixed(source))
    nowhere = made.backend.alloc(64 << 20) + (32 << 20)  # for the virtual machine
    made.backend.write(made.source, nowhere.to_bytes(8, "little"))
    made.launch("weighs")
    made.backend.advance(0)
    report = made.report()
    assert report.findings == ()
    assert any("not looked at on the virtual machine" in note for note in report.notes), report.notes


def test_the_inputs_are_those_before_the_launch() -> None:
    """Behind it `out` has no zeros."""
    report, _ = ran(racy(WEIGHTS.replace("0 * line", "(out[blockIdx.x * 64 + t] == 0) * 0 * line")))
    assert [each.unoptimized for each in report.findings] == [True]
