"""`--overhead`: the share of launches that is looked at follows from a clock that the test controls."""

from __future__ import annotations

import pytest

from consan._errors import UsageError
from consan.backends.cost import CostMeter
from consan.options import read_share
from consan.session.planning.budget import FIRST, OverheadBudget
from consan.session.planning.options import LaunchFilter, SessionOptions
from consan.session.planning.selection import Selection


class Program:
    """Launches of one shape. A launch takes `plain` seconds of the program, and one that is looked at `own` seconds of consan's."""

    def __init__(self, share: float | None, *, plain: float = 1.0, own: float = 0.5) -> None:
        self.now, self.plain, self.own = 0.0, plain, own
        self.idle = 0.0  # seconds in which it only waits
        self.cost = CostMeter(lambda: self.now, lambda: self.now - self.idle)
        budget = None if share is None else OverheadBudget(share, lambda: self.cost.seconds, lambda: self.cost.busy)
        self.selection = Selection(LaunchFilter(), budget)

    def launch(self, times: int, shape: int = 1, entry: str = "k") -> int:
        """Launch, and return how many launches were looked at."""
        looked = 0
        for _ in range(times):
            with self.cost.working():
                accepted = self.selection.accepts(0, entry, ((shape, 1, 1), (32, 1, 1), (1, 1, 1)))
                self.now += self.own * accepted
            self.now += self.plain
            looked += accepted
        return looked


@pytest.mark.parametrize("share", [0.01, 0.05, 0.2])
def test_the_program_is_slowed_by_no_more_than_the_share(share: float) -> None:
    program = Program(share)
    looked = program.launch(10_000)
    assert looked == pytest.approx(share * 10_000 / 0.5, rel=0.05, abs=FIRST)
    assert program.cost.seconds <= share * (program.cost.elapsed - program.cost.seconds) + program.own
    assert program.selection.spared == {(0, "k"): 10_000 - looked}


def test_a_program_that_waits_saves_up_no_time() -> None:
    program = Program(0.05, own=1.0)
    before = program.launch(1000)
    program.now, program.idle = program.now + 1e6, 1e6
    assert program.launch(1000) == pytest.approx(before, abs=FIRST)


def test_all_are_looked_at_where_that_is_cheap_or_nobody_asks() -> None:
    assert Program(0.05, own=0.04).launch(1000) == 1000
    assert Program(None, own=100.0).launch(1000) == 1000


def test_the_first_launches_of_each_kernel_and_shape_are_always_looked_at() -> None:
    program = Program(0.05, own=1000.0)
    assert [program.launch(5, shape) for shape in (1, 2, 1)] == [FIRST, FIRST, 0]
    assert program.launch(5, entry="other") == FIRST


def test_what_a_filter_leaves_out_is_no_part_of_it() -> None:
    program = Program(0.05, own=1000.0)
    program.selection = Selection(LaunchFilter(launch_skip=3), OverheadBudget(0.05, lambda: 0.0, lambda: 0.0))
    assert program.launch(5) == 2
    assert (program.selection.left_out, program.selection.spared) == ({(0, "k"): 3}, {})


def test_the_option() -> None:
    assert [read_share(text) for text in ("5%", "5", "0.5%", "250%")] == [0.05, 0.05, 0.005, 2.5]
    for text in ("", "0", "-1%", "x", "5%%", "nan"):
        with pytest.raises(UsageError, match="expected a percentage above zero"):
            read_share(text)
    with pytest.raises(UsageError, match="overhead=0"):
        SessionOptions.of({"overhead": 0})
