"""Sets of launches by number give what Python's sets do."""

from __future__ import annotations

import random

import planted
import pytest

from consan.session.comparing import streams
from consan.session.comparing.streams import NONE, Numbers


def _compare(seed: int) -> None:
    chosen = random.Random(seed)
    kept: list[tuple[Numbers, set[int]]] = [(NONE, set())]
    for turn in range(300):
        (one, first), (other, second) = chosen.choice(kept), chosen.choice(kept)
        number = turn + chosen.randrange(80)
        made = chosen.choice(
            [
                (one | other, first | second),
                (one & other, first & second),
                (one - other, first - second),
                (one.plus(number), first | {number}),
                (Numbers([number, number, turn]), {number, turn}),
            ]
        )
        assert list(made[0]) == sorted(made[1])
        assert (len(made[0]), bool(made[0])) == (len(made[1]), bool(made[1]))
        assert (one <= other) == (first <= second)
        assert (number in one) == (number in first)
        assert not first or one.least == min(first)
        kept = [*kept[-20:], made]


def _compare_all() -> None:
    for seed in range(20):
        _compare(seed)


@pytest.mark.parametrize("seed", range(20))
def test_like_the_sets_of_python(seed: int) -> None:
    _compare(seed)


FAULTS = {
    "not moved": ("return _of(self._bits | other._bits << -ahead, self._first)", "return _of(self._bits | other._bits, self._first)"),
    "the other first": (
        "return _of(self._bits << ahead | other._bits, other._first)",
        "return _of(self._bits << ahead | other._bits, self._first)",
    ),
    "bits below are kept": ("return _of(bits >> below, first + below)", "return _of(bits >> below, first)"),
    "what both have is left": ("self._bits & ~(other._bits", "self._bits & (other._bits"),
}


@pytest.mark.parametrize(("old", "new"), FAULTS.values(), ids=FAULTS)
def test_a_fault_shows(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    planted.plant(monkeypatch, streams, old, new)
    with pytest.raises(AssertionError):
        _compare_all()
