"""The cost of consan for this process, for a report."""

from __future__ import annotations

from consan.backends.cost import COST
from consan.reports.model import Cost


def begin() -> None:
    """A run begins: count from now on."""
    COST.restart()


def spent() -> Cost:
    """The cost until now."""
    return Cost(round(COST.seconds, 6), round(COST.elapsed, 6), COST.most_bytes)
