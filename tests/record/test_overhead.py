"""`--overhead` in a session: launches for which there is no time run as they are, and the coverage says how many were looked at."""

from __future__ import annotations

import itertools
import time

import pytest
from armed_support import bench_launch
from framework_support import Framework
from planted import plant
from test_known_launches import known

from consan.backends.cost import COST
from consan.reports.verdict.coverage import by_kernel
from consan.session import frameworks, spared_launches
from consan.session.planning import budget
from consan.session.planning.budget import FIRST


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock takes a second: half of the time is consan's own, or more."""
    seconds = itertools.count()
    for clock in ("now", "computed"):
        monkeypatch.setattr(COST, clock, lambda: float(next(seconds)))
    COST.restart()


def test_the_coverage_says_how_many_launches_were_looked_at() -> None:
    framework = Framework(overhead=0.05, global_memory="off")
    for number in range(10):
        framework.launch("exchanges", number=1)
        framework.backend.advance(0)
        assert framework.exchanged[-1] == (number >= FIRST), "the plain form of the module"
    report = framework.report()
    assert report.verdict == "clean"
    (kernel,) = (kernel for kernel in report.kernels if kernel.launches)
    assert kernel.launches == 10
    assert by_kernel(report)["exchanges"]["barriers"] == f"sampled ({FIRST} of 10)"
    assert "--overhead" in str(report)


def test_all_are_looked_at_within_the_share() -> None:
    framework = Framework(overhead=1000.0, global_memory="off")
    for _ in range(10):
        framework.launch("exchanges", number=1)
        framework.backend.advance(0)
    assert by_kernel(framework.report())["exchanges"]["barriers"] == "checked"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bench_launch.NullLibrary:
    return bench_launch.NullLibrary(str(tmp_path_factory.mktemp("driver")))


def coverage(kernel: str, library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch, overhead: float = 0.05) -> tuple[str, int]:
    """The coverage of a kernel's barriers after 120 launches, and how many of the last hundred took the long way."""
    program = known(f"cupy {kernel}", library, monkeypatch, overhead=overhead)
    for _ in range(20):
        program.launch()
        time.sleep(0.02)  # for the thread that checks
    repeated = program.repeats(100)
    found = by_kernel(program.session.report())[kernel]["barriers"]
    program.close()
    return found, 100 - repeated


@pytest.mark.parametrize("kernel", ["waits", "adds"])
def test_launches_without_a_log_take_no_time(kernel: str, library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    assert coverage(kernel, library, monkeypatch) == ("checked", 0)


def test_launches_for_which_there_is_no_time_take_the_short_way(library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    assert coverage("picks", library, monkeypatch) == (f"sampled ({FIRST} of 120)", 0)


def test_launches_with_a_log_are_chosen_one_by_one(library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    assert coverage("picks", library, monkeypatch, overhead=1000.0) == ("checked", 100)


def test_they_are_looked_at_once_there_is_time(library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "LOOK_EVERY", 60.0)  # the test looks
    program = known("cupy picks", library, monkeypatch, overhead=0.05)
    for _ in range(20):
        program.launch()
        time.sleep(0.02)  # for the thread that checks
    assert program.repeats(5) == 5
    found = program.session.selection.budget
    assert found is not None
    assert not found.look()
    found.share = 1000.0
    assert found.look()
    assert program.repeats(5) == 0
    assert by_kernel(program.session.report())["picks"]["barriers"] == f"sampled ({FIRST + 5} of 30)"


@pytest.mark.parametrize(
    ("member", "old", "new", "kernel", "overhead"),
    [
        ("_alike", "not self.selection.spares", "True", "picks", 1000.0),
        ("_may_differ", "self.selection.filters", "self.selection.spares", "waits", 0.05),
    ],
)
def test_planted(
    member: str, old: str, new: str, kernel: str, overhead: float, library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = coverage(kernel, library, monkeypatch, overhead)
    plant(monkeypatch, frameworks, old, new, f"Frameworks.{member}")
    assert coverage(kernel, library, monkeypatch, overhead) != right


@pytest.mark.parametrize(("member", "old", "new"), [("covers", "not self.over.value", "True"), ("lends", ", over=self.over)", ")")])
def test_planted_in_those_without_time(
    member: str, old: str, new: str, library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, spared_launches, old, new, f"SparedLaunches.{member}")
    with pytest.raises(AssertionError):
        test_they_are_looked_at_once_there_is_time(library, monkeypatch)
