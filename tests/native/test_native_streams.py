"""Streams of native programs, by the calls that the interposer tells: a made-up CUPTI calls it behind each."""

from __future__ import annotations

from pathlib import Path

import pytest
from native_case import STATUS, Case, break_interposer
from planted import plant

from consan.backends.callbacks import DriverCall
from consan.native import calls
from consan.reports.model import Report
from consan.session.comparing import captures
from consan.session.comparing.driver_calls import ProgramOrder
from consan.toolchain.host_library import C
from consan.toolchain.nvrtc import compile_ptx

pytestmark = pytest.mark.skipif(C.compiler() is None, reason="no C compiler")
TWO = ("stream1", "again", "{}", "stream2", "again")
GRAPH = ("stream1", "begin", "again", "end", "run", "{}", "stream2", "again")


@pytest.fixture(autouse=True)
def _cupti(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "libraries", lambda: iter([str(case.folder / "libcupti.so")]))


def run(
    case: Case, *steps: str, how: str = "asked", image: str = "", why: str = "", launcher: str = "cuLaunchKernel", **more: str
) -> Report:
    """`why`: of launches that ran unchecked."""
    words = (how, "cuModuleLoadData", image or case.image("clean"), launcher, *["synchronize"] * (launcher == "cuLaunchKernel"), *steps)
    status, report, handed = case.run(*words, **more)
    assert (status, [why in each for each in report.incomplete]) == (STATUS, [True] if why else []), (report.incomplete, handed)
    return report


def gap(report: Report) -> str:
    return " ".join(area for area in report.not_checked if area.startswith("global-memory"))


@pytest.mark.parametrize("steps", [TWO, GRAPH], ids=["launches", "a graph"])
@pytest.mark.parametrize("edge", ["none", "edge"])
def test_launches_of_two_streams(steps: tuple[str, ...], edge: str, case: Case) -> None:
    report = run(case, *(step.format(edge) for step in steps))
    assert {finding.situation for finding in report.findings} == ({"no-stream-edge"} if edge == "none" else set()), gap(report)
    assert "compared" not in gap(report)


SILENT = 'extern "C" __global__ void sums(const float *x, float *out) { int at = blockIdx.x * 256 + threadIdx.x; out[at] = x[at] + 1; }'


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A kernel that records nothing."""
    path = tmp_path_factory.mktemp("silent") / "silent.ptx"
    path.write_text(compile_ptx(SILENT).ptx)
    return str(path)


@pytest.mark.parametrize("early", ["", "1"], ids=["", "made before the first image"])
@pytest.mark.parametrize("edge", ["none", "edge"])
@pytest.mark.parametrize("steps", [TWO, GRAPH], ids=["launches", "a graph"])
def test_streams_of_which_nobody_saw_the_beginning(steps: tuple[str, ...], edge: str, early: str, silent: str, case: Case) -> None:
    """The driver is not asked about a stream that is being captured."""
    report = run(case, *(step.format(edge) for step in steps), image=silent, **({"FAKE_EARLY_STREAMS": early} if early else {}))
    assert {finding.situation for finding in report.findings} == ({"no-stream-edge"} if edge == "none" else set()), gap(report)


UNKNOWN = "and what may run at the same time in another stream: all accesses of {} are not known"


def test_the_default_stream_of_a_thread(case: Case) -> None:
    """A launch in it runs as it is, and the interposer reports it afterwards."""
    for waits in (False, True):
        report = run(case, "again", *["synchronize"] * waits, "stream2", "again", how="threads", why="in a thread's own default stream")
        assert not report.findings
        assert (UNKNOWN.format("sums") in gap(report)) is not waits, gap(report)


def test_a_graph_that_is_made_node_by_node(case: Case) -> None:
    report = run(case, "stream1", "graph", "stream2", "again", why="node by node")
    assert not report.findings
    assert UNKNOWN.format("a graph that was not captured as a whole, or was changed,") in gap(report), gap(report)


def test_a_profiler_that_has_cupti(case: Case) -> None:
    report = run(case, "stream1", "again", "stream2", "again", why="a profiler has subscribed to CUPTI", FAKE_CUPTI_TAKEN="1")
    assert not report.findings
    assert "launches of different streams are not compared on a GPU: a profiler has subscribed to CUPTI" in gap(report), gap(report)


@pytest.mark.parametrize(("word", "how"), [("o10000000", "asked"), ("e10000000", "asked"), ("e10000000", "dlsym")])
def test_memory_that_was_shared_before_the_first_image(word: str, how: str, case: Case) -> None:
    report = run(case, how=how, why="what other processes do there is not known", FAKE_SHARES=word)
    what = {"o": "memory of another process", "e": "memory that another process may have opened"}[word[0]]
    assert any(f"parameter 0 points to {what}" in why for why in report.incomplete)


def test_memory_that_no_launch_reaches(case: Case) -> None:
    assert run(case, FAKE_SHARES="o40000000").verdict == "clean"


CHAINED = """extern "C" __global__ void sums(const float *x, float *out) {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    WAIT
    if (threadIdx.x == 0) out[blockIdx.x] = x[blockIdx.x] + 1;
}"""
WAIT = 'asm volatile("griddepcontrol.wait;" ::: "memory");'


@pytest.mark.parametrize(
    ("wait", "steps", "found"),
    [("", ("dependent",), {"no-grid-wait"}), (WAIT, ("dependent",), set()), ("", (), set())],
    ids=["no wait", "a wait", "no attribute"],
)
def test_programmatic_dependent_launches(wait: str, steps: tuple[str, ...], found: set[str], tmp_path: Path, case: Case) -> None:
    """The attribute of the launch says it."""
    image = tmp_path / "chained.ptx"
    image.write_text(compile_ptx(CHAINED.replace("WAIT", wait)).ptx)
    report = run(case, *steps, "again", image=str(image), launcher="cuLaunchKernelEx")
    assert {finding.situation for finding in report.findings} == found, (gap(report), report.incomplete)
    assert not any(area.startswith("launches: races between") for area in report.not_checked), report.not_checked


@pytest.mark.parametrize("chained", [False, True])
def test_a_capture_that_began_before_the_first_image(chained: bool, tmp_path: Path, case: Case) -> None:
    """A runtime loads an image at the first launch. To ask for the flags of the stream would end the capture."""
    image = tmp_path / "chained.ptx"
    image.write_text(compile_ptx(CHAINED.replace("WAIT", "")).ptx)
    steps = (*["dependent"] * chained, "again", "again", "end", "run")
    words = ("asked", "cuModuleLoadData", str(image), "cuLaunchKernelEx", *steps)
    status, report, handed = case.run(*words, FAKE_EARLY_CAPTURE="1")
    assert (status, handed.count("captured cuLaunchKernelEx")) == (STATUS, 2), (report.incomplete, handed)
    assert bool(report.findings) or (report.verdict == "incomplete") is chained, report


def test_planted_captures(tmp_path: Path, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, captures, "self.program.is_captured_unseen(handle)", "False", "Captures.place")
    with pytest.raises(AssertionError):
        test_a_capture_that_began_before_the_first_image(False, tmp_path, case)


@pytest.mark.parametrize("event", ["event7", "event12"])
def test_a_launch_that_records_an_event_by_an_attribute(event: str, case: Case) -> None:
    """What waits for it may run beside the launch."""
    run(case, event, "again", launcher="cuLaunchKernelEx", why="a launch records an event by an attribute")


# The program waits for an answer to the first call for a stream, since the server may ask the driver about it. Later calls need no answer.
KINDS = (
    (
        "a stream that is made",
        ("stream1", "again", "edge", "edge"),
        ["cuStreamCreate", "cuEventRecord", "cuStreamCreate", "cuStreamWaitEvent"],
    ),
    ("the default stream", ("synchronize", "synchronize"), []),
)


def asked(case: Case, steps: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls whose answer the program waits for, but launches."""
    found, called = list[str](), ProgramOrder.called

    def listens(order: ProgramOrder, call: DriverCall) -> None:
        found.extend([call.name] * (not call.noted))
        called(order, call)

    with monkeypatch.context() as inside:
        inside.setattr(ProgramOrder, "called", listens)
        run(case, *steps, "again")
    return [name for name in found if not name.startswith("cuLaunch")]


@pytest.mark.parametrize(("steps", "waited"), [row[1:] for row in KINDS], ids=[row[0] for row in KINDS])
def test_the_program_does_not_wait_behind_calls_for_streams_that_are_known(
    steps: tuple[str, ...], waited: list[str], case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked(case, steps, monkeypatch) == waited


def test_planted_streams_that_nobody_knows(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver may be asked about such a stream when it has gone."""
    break_interposer(monkeypatch, "return stream == LEGACY ||", "return true ||", "streams.h")
    with pytest.raises(AssertionError):
        test_the_program_does_not_wait_behind_calls_for_streams_that_are_known(*KINDS[0][1:], case, monkeypatch)
