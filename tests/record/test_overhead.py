"""`--overhead` in a session: launches for which there is no time run as they are, and the coverage says how many were looked at."""

from __future__ import annotations

import itertools

import pytest
from framework_support import Framework

from consan.backends.cost import COST
from consan.reports.verdict.coverage import by_kernel
from consan.session.planning.budget import FIRST


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock takes a second: half of the time is consan's own, or more."""
    seconds = itertools.count()
    monkeypatch.setattr(COST, "now", lambda: float(next(seconds)))
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
