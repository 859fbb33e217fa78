"""How much the text report says: the level of each of its parts. By default it fills a screen; `--details` prints all.

The default keeps what says where a mistake is, how it is repaired and what was not looked at. Lines that only affirm (what was checked, how
it was recorded) and lines for a second look (lines around a place, warps and lanes) are for `--details`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Final


class ReportLevel(IntEnum):
    """SCREEN: in every report. DETAILS: only with `--details`."""

    SCREEN = 1
    DETAILS = 2


SCREEN, DETAILS = ReportLevel.SCREEN, ReportLevel.DETAILS

# The labels of rows, in the order of printing.
PARTS: Final = {
    # A finding's.
    "schedule": SCREEN,  # only another schedule shows it; of a run: whether the result may depend on the schedule
    "text": SCREEN,
    "value": DETAILS,
    "outcomes": SCREEN,
    "missing": SCREEN,
    "fix": SCREEN,
    "verified": SCREEN,
    "kernel": DETAILS,  # the mangled name
    "seen": SCREEN,
    "policy": SCREEN,
    "bytes": DETAILS,
    "barrier": SCREEN,
    "waits": SCREEN,
    "also": SCREEN,
    "may follow": SCREEN,
    "also in": SCREEN,
    "tests": SCREEN,
    # The run's.
    "found": SCREEN,
    "suppressed": SCREEN,
    "ran": SCREEN,
    "recorded": DETAILS,
    "global": DETAILS,
    "annotated": SCREEN,
    "checked": DETAILS,
    "not checked": SCREEN,
    "incomplete": SCREEN,
    "not instrumented": SCREEN,
    "why it holds": DETAILS,  # the row `schedule` has a reason where the result holds for every one
    "proof": SCREEN,
    "note": SCREEN,
    "seed": DETAILS,
    "cost": DETAILS,
    "program": SCREEN,
    "status": SCREEN,
    # Commands.
    "reproduce": SCREEN,
    "stored run": SCREEN,
    "next": DETAILS,
    "explain": SCREEN,
    "details": SCREEN,
}
LISTED: Final = {SCREEN: 3, DETAILS: 8}  # items of one label: waiting warps, kernels and tests of a finding


def kept(rows: Iterable[tuple[str, str]], level: ReportLevel) -> Iterator[tuple[str, str]]:
    """The rows, as (label, text), that a report of this level prints."""
    yield from (row for row in rows if PARTS[row[0]] <= level)
