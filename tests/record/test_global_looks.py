"""Global memory in launches of frameworks, with `--global auto`: proven apart, looked at in the first launch of a shape, or named."""

from __future__ import annotations

from typing import Any

import pytest
from framework_support import Framework, gap
from leaving_support import slow_clock

from consan._errors import EnvironmentFailure
from consan.checker.logs import shares
from consan.checker.logs.launch import Launch
from consan.session import global_looks
from consan.session.executing import launch_check
from consan.session.executing.loading import Modules
from consan.session.planning import launch_sizes

NOT_COMPARED = "launches of different streams are not compared on a GPU: the calls of its driver are not seen"


@pytest.fixture(autouse=True)
def _slow(monkeypatch: pytest.MonkeyPatch) -> None:
    slow_clock(monkeypatch)


def test_what_is_proven_counts_as_checked() -> None:
    framework = Framework()
    for out in (0, 4, 0):
        framework.launch(out=out)
    framework.launch(ctas=4)
    report = framework.report()
    assert (report.verdict, framework.exchanged) == ("clean", [False] * 4)
    assert "global-memory" in report.checked
    (kernel,) = (kernel for kernel in report.kernels if kernel.launches)
    assert (kernel.name, kernel.launches, kernel.global_proven) == ("fills", 4, 2 * (3 * 128 + 256))


def test_a_race_of_the_first_launch_is_found() -> None:
    framework = Framework()
    framework.launch(number=64)
    framework.launch(number=64)
    report = framework.report()
    assert framework.exchanged == [True, False]
    assert (report.verdict, [finding.kind for finding in report.findings]) == ("violations", ["global-race"])
    assert {access.name.partition(" of ")[2] for access in report.findings[0].pair} == {"argument 1"}
    assert all(access.name.startswith("element ") for access in report.findings[0].pair)
    assert "global-memory" not in report.checked
    assert gap(report).startswith("races are not looked for in fills: 1 of 2 launches: only the first launches"), gap(report)


@pytest.mark.parametrize("entry", ["scatters", "exchanges"])
@pytest.mark.parametrize("knows", [True, False])
def test_one_launch_without_a_proof_is_looked_at(entry: str, knows: bool) -> None:
    for apart in (0, 1):
        framework = Framework(knows=knows)
        framework.launch(entry, apart)
        report = framework.report()
        assert framework.exchanged == [True]
        assert (report.verdict, "global-memory" in report.checked) == (("clean", "violations")[not apart], True), gap(report)
        assert [(kernel.name, kernel.launches) for kernel in report.kernels if kernel.launches] == [(entry, 1)]


def test_nobody_is_asked_for_parameters_that_prove_nothing() -> None:
    """How often the loop runs follows from memory."""
    source = 'extern "C" __global__ void k(unsigned* out, unsigned* from, int) { for (int n = from[0]; n; --n) out[n] = 1; }'
    framework = Framework(source)
    for _ in range(3):
        framework.launch("k")
    assert framework.asked == 2  # by the first launch, for its proof and for the size of its log
    assert "k: 2 of 3 launches" in gap(framework.report())


def test_later_launches_without_a_proof_are_named() -> None:
    framework = Framework()
    for _ in range(3):
        framework.launch("scatters", 1)
        framework.launch("exchanges", 1)
    framework.launch("scatters", 1, ctas=3)
    report = framework.report()
    assert framework.exchanged == [True, True, False, False, False, False, True]
    assert report.verdict == "clean"
    launches = {kernel.name: (kernel.launches, kernel.ctas) for kernel in report.kernels if kernel.launches}
    assert (launches, len(report.kernels)) == ({"scatters": (4, 9), "exchanges": (3, 6)}, 3)
    assert "scatters: 2 of 4 launches: only the first" in gap(report)
    assert "exchanges: 2 of 3 launches: only the first" in gap(report)


def test_a_later_launch_without_a_proof_is_named_though_the_first_had_one() -> None:
    framework = Framework()
    framework.launch()
    framework.launch(number=64)
    report = framework.report()
    assert framework.exchanged == [False, False]
    assert "fills: 1 of 2 launches" in gap(report)


PAIRS = 28  # of the 8 sets of one CTA each, where the logs of two fit


def _two_logs_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch has time for one pair of sets."""
    seen, whole = list[int](), Launch.histories

    def histories(self: Launch, clusters: Any) -> list[Any]:
        found = whole(self, clusters)
        seen.extend(history.log.nbytes for history in found)
        return found

    with monkeypatch.context() as inside:
        inside.setattr(Launch, "histories", histories)
        (framework := Framework()).launch("scatters", 1, ctas=8)
        framework.report()
    monkeypatch.setattr(shares, "MOST_BYTES", 2 * max(seen) + max(seen) // 2)
    monkeypatch.setattr(shares, "MORE", 1)
    monkeypatch.setattr(launch_check, "LONGEST_PAIRS", 0.0)


@pytest.mark.parametrize("apart", [0, 1])
def test_launches_are_looked_at_until_all_pairs_of_sets_were_compared(apart: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _two_logs_fit(monkeypatch)
    framework = Framework()
    for number in range(1, PAIRS + 3):
        framework.launch("scatters", apart, ctas=8)
        framework.settle()
        if number == PAIRS - 1 and apart:
            assert "27 of 28 pairs of 8 sets of its CTAs were compared" in gap(framework.session.so_far())
    assert framework.exchanged == [True] * PAIRS + [False] * 2
    assert framework.report().verdict == ("clean" if apart else "violations")


def test_looks_at_pairs_that_take_too_long_end_and_the_report_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    _two_logs_fit(monkeypatch)
    monkeypatch.setattr(global_looks, "LONGEST_LOOKS_AT_PAIRS", 0.0)
    framework = Framework()
    for _ in range(PAIRS):
        framework.launch("scatters", 1, ctas=8)
        framework.settle()
    assert framework.exchanged.count(True) == global_looks.FEW_LOOKS_AT_PAIRS
    report = framework.report()
    assert report.verdict == "incomplete"
    assert "8 of 28 pairs of 8 sets of its CTAs were compared" in report.incomplete[0]


def test_proofs_that_take_too_long_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(global_looks, "LONGEST_PROOFS", -1.0)
    framework = Framework()
    for _ in range(3):
        framework.launch()
    assert "fills: 2 of 3 launches" in gap(framework.report())


def test_proofs_are_made_before_too_many_are_owed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(global_looks, "MOST_PENDING_PROOFS", 2)
    framework = Framework()
    for out in (0, 4, 8, 12, 4, 8):
        framework.launch(out=out)
    report = framework.report()
    assert "global-memory" in report.checked, gap(report)


def test_few_launches_of_a_kernel_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(global_looks, "MOST_LOOKS", 1)
    framework = Framework()
    framework.launch("scatters", 1)
    framework.launch("scatters", 1, ctas=3)
    assert framework.exchanged == [True, False]
    report = framework.report()
    assert "scatters: 1 of 2 launches" in gap(report)
    assert report.verdict == "incomplete"
    assert "none of the launches of 1 shape (3x1x1 x 64x1x1) was compared in full: 1 of 2 launches" in report.incomplete[0]


def test_a_large_launch_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_sizes, "MOST_WARPS", 64)
    framework = Framework()
    framework.launch("scatters", 0, ctas=64)
    assert framework.exchanged == [False]
    assert "scatters: 1 of 1 launch: 128 warps are too many for logs with global memory" in gap(framework.report())


def test_a_form_that_cannot_be_made_does_not_stop_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise EnvironmentFailure("the assembler has died\nand more")

    monkeypatch.setattr(Modules, "with_global_races", fails)
    framework = Framework()
    framework.launch("scatters", 1)
    assert framework.exchanged == [False]
    assert gap(framework.report()).endswith("scatters: 1 of 1 launch: the form that records it cannot be made: the assembler has died")


def test_each_report_looks_anew() -> None:
    framework = Framework()
    for _ in range(2):
        framework.launch("scatters", 0)
        report = framework.session.take()
        assert report is not None
        assert "global-race" in {finding.kind for finding in report.findings}
    assert framework.exchanged == [True, True]


def test_without_global_memory_nothing_is_looked_at() -> None:
    framework = Framework(global_memory="off")
    framework.launch("scatters", 0)
    assert framework.exchanged == [False]
    assert framework.report().verdict == "clean"


def test_what_all_is_asked_of_is_proven_too() -> None:
    framework = Framework(global_memory="on")
    framework.launch()
    report = framework.report()
    assert framework.exchanged == [True]  # to the form without global memory
    assert (report.verdict, "global-memory" in report.checked) == ("clean", True)
    framework.launch(number=64)
    assert framework.exchanged[-1] is False
    assert [finding.kind for finding in framework.report().findings] == ["global-race"]


LAST = """
extern "C" __global__ void sums(unsigned* out, unsigned* parts, int fenced) {
    if (threadIdx.x) return;
    parts[1 + blockIdx.x] = 1 + blockIdx.x;
    if (fenced) __threadfence();
    if (atomicAdd(parts, 1u) % gridDim.x != gridDim.x - 1) return;
    if (fenced) __threadfence();
    for (unsigned i = 0; i < gridDim.x; ++i) *out += parts[1 + i];
}
"""


@pytest.mark.parametrize("fenced", [0, 1])
def test_threads_that_synchronise_through_memory(fenced: int) -> None:
    framework = Framework(LAST)
    framework.launch("sums", fenced)
    report = framework.report()
    assert framework.exchanged == [True]
    assert (report.verdict, "global-memory" in report.checked) == (("violations", "clean")[fenced], True), gap(report)


@pytest.mark.parametrize(("ctas", "why"), [(36, "36 CTAs that may synchronise"), (20, "the 40 warps of 20 CTAs that may synchronise")])
def test_larger_launches_that_synchronise_are_not_looked_at(ctas: int, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without their replay nothing in them is checked, and nobody can repeat them."""
    monkeypatch.setattr(launch_sizes, "MOST_TOGETHER", 32)
    monkeypatch.setattr(launch_sizes, "MOST_WARPS_TOGETHER", 32)
    framework = Framework(LAST)
    framework.launch("sums", 1, ctas)
    assert framework.exchanged == [False]
    assert f"sums: 1 of 1 launch: {why}" in gap(framework.report())


@pytest.mark.parametrize(("streams", "compared"), [((5, 5), True), ((0, 1), True), ((0, 5), False)])
def test_launches_of_different_streams_are_not_compared(streams: tuple[int, int], compared: bool) -> None:
    framework = Framework()
    for stream in streams:
        framework.launch(stream=stream)
    report = framework.report()
    assert (report.verdict, "global-memory" in report.checked) == (("clean", True) if compared else ("incomplete", False))
    assert gap(report) == ("" if compared else f"races are not looked for in fills: {NOT_COMPARED}")
    framework.session.take()
    framework.launch(stream=streams[0])
    assert "global-memory" in framework.report().checked


RESIDENT = """
extern "C" __global__ void adds(unsigned* out, unsigned* from, int) {
    asm volatile("{ .reg .u32 r; atom.global.gpu.acq_rel.add.u32 r, [%0], 1; }" :: "l"(out + from[threadIdx.x]) : "memory");
}
extern "C" __global__ void weak_poll(unsigned* out, unsigned* from, int) {
    for (unsigned seen = 0; blockIdx.x == 0 && !seen;) asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(seen) : "l"(out));
    if (blockIdx.x == 1) out[from[threadIdx.x]] = 1;
}
extern "C" __global__ void polls(unsigned* out, unsigned* from, int) {
    if (blockIdx.x == 0) while (atomicAdd(out, 0) == 0);
    else atomicExch(out + from[threadIdx.x], 1);
}
"""


@pytest.mark.parametrize(("entry", "looked"), [("adds", True), ("weak_poll", False), ("polls", False)])
def test_only_ctas_that_wait_for_others_need_a_place(entry: str, looked: bool) -> None:
    framework = Framework(RESIDENT)
    framework.backend.resident_ctas = lambda *_: 1  # type: ignore[method-assign]
    framework.launch(entry)
    report = framework.report()
    assert framework.exchanged == [looked]
    assert ("2 CTAs that may wait for each other cannot all be resident" in gap(report)) is not looked, gap(report)
