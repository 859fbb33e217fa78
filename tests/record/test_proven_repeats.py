"""Launches that a framework repeats, of a kernel that is proven free of races: they run as they are where the proof covers them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from armed_support import Program, bench_launch
from test_known_launches import PLAIN, known, launched

from consan.reports.model import KernelSummary, Report
from consan.session import repeated_launch
from consan.session.planning.launch_proofs import LaunchProofs

MiB = 1 << 20


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bench_launch.NullLibrary:
    return bench_launch.NullLibrary(str(tmp_path_factory.mktemp("driver")))


@pytest.fixture
def program(library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    """Data decide what `picks` does, so it does not follow from an earlier launch."""
    made = known("cupy picks", library, monkeypatch)
    made.session.frameworks.judge.always = LaunchProofs(60.0, made.session.note, lambda address: (address // MiB * MiB, MiB))
    yield made
    made.close()


def of(report: Report, name: str = "picks") -> KernelSummary:
    return next(each for each in report.kernels if each.name == name)


def test_they_run_as_they_are_and_are_counted(program: Program) -> None:
    program.launch()
    assert launched(program) != PLAIN, "the first one is recorded"
    program.launch(20)
    assert launched(program) == PLAIN
    report = program.session.report()
    kernel = of(report)
    assert (report.verdict, kernel.launches, kernel.proven_launches) == ("clean", 21, 20)
    assert kernel.proof is not None


def test_one_that_the_proof_does_not_cover_is_recorded(program: Program) -> None:
    program.launch(5)
    before = program.values[0].value
    program.values[0].value = program.values[1].value + 4  # both arrays in one allocation
    program.launch()
    assert launched(program) != PLAIN
    program.values[0].value = before
    program.launch()
    assert launched(program) == PLAIN
    report = program.session.report()
    assert [each for each in report.notes if each.endswith("two arrays are in one allocation")]
    assert of(report).launches == 7


def test_memory_that_has_moved_is_asked_for_at_each_launch(program: Program) -> None:
    proofs = program.session.frameworks.judge.always
    assert proofs is not None
    program.launch(5)
    assert launched(program) == PLAIN
    proofs.allocation = lambda address: (address, 4)
    program.launch()
    assert launched(program) != PLAIN


def test_where_most_are_not_covered_they_have_logs(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    program.launch(2)
    monkeypatch.setattr(repeated_launch, "MOST_UNKNOWN", 3)
    program.values[0].value = program.values[1].value + 4
    times = program.learn()
    program.values[0].value -= 4 + MiB
    program.launch(2)
    assert launched(program) != PLAIN
    assert program.counts() == ("clean", times + 4)


def test_what_parameters_decide_is_left_to_what_is_known(library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    made = known("cupy waits", library, monkeypatch)
    made.session.frameworks.judge.always = LaunchProofs(60.0, made.session.note, lambda address: (address // MiB * MiB, MiB))
    made.launch(3)
    assert of(made.session.report(), "waits").proof is None
    made.close()


def test_one_that_does_what_no_recorded_launch_has_shown_is_recorded(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    proofs = program.session.frameworks.judge.always
    assert proofs is not None
    program.launch(5)
    assert launched(program) == PLAIN
    monkeypatch.setattr(proofs, "like", lambda *_: "other values of parameters that decide")
    program.launch()
    assert launched(program) != PLAIN
