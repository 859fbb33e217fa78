"""While a launch is checked beside the program, its threads wait for the interpreter for a short time only."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from planted import plant

from consan.session.planning import switches
from consan.session.planning.switches import OFTEN, Switches

GIVEN = 0.004


@pytest.fixture(autouse=True)
def interval() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(GIVEN)
    yield
    sys.setswitchinterval(before)


def at(seconds: float) -> bool:
    return abs(sys.getswitchinterval() - seconds) < 1.5e-6  # Python cuts it to microseconds


def test_while_a_check_runs() -> None:
    made = Switches()
    with made.often():
        assert at(OFTEN)
        with made.often():
            assert at(OFTEN)
        assert at(OFTEN), "another check runs"
    assert at(GIVEN)
    with pytest.raises(KeyError), made.often():
        raise KeyError
    assert at(GIVEN)


def test_what_the_program_sets_stays() -> None:
    made = Switches()
    with made.often():
        sys.setswitchinterval(0.001)
    assert at(0.001)
    sys.setswitchinterval(OFTEN / 2)
    with made.often():
        assert at(OFTEN / 2)
    assert at(OFTEN / 2)


FAULTS: dict[str, tuple[str, str, Any]] = {
    "never": ("sys.setswitchinterval(OFTEN)", "pass", test_while_a_check_runs),
    "for ever": ("sys.setswitchinterval(self._given + _SAME / 2)", "pass", test_while_a_check_runs),
    "with the first one": ("not self._checks and ", "", test_while_a_check_runs),
    "whatever the program sets": ("abs(sys.getswitchinterval() - OFTEN) < _SAME", "True", test_what_the_program_sets_stays),
    "longer than the program's": ("if self._given > OFTEN", "if True", test_what_the_program_sets_stays),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, test = FAULTS[fault]
    plant(monkeypatch, switches, old, new)
    with pytest.raises(AssertionError):
        test()
