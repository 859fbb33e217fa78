"""The events of a finding, as a picture: lanes, events in order, the edges between them, and the missing edge.

`build` turns a finding into a `Timeline`. `svg` and `text` draw it; `steps` gives the same as a table.
The picture shows only what the finding holds: who, where, which asynchronous operation, which barrier and phase, what is missing.
Time runs down. (1) and (2) are in the order of the finding's text; without an edge between them, either may come first.

A finding of an older stored run has no `situation`: its picture leaves out what only the situation tells (who waited, which exit).
Not drawn: durations (nothing is timed), and accesses that the finding does not name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from consan.reports.catalogue.catalogue import entry_of
from consan.reports.model import Finding
from consan.reports.timeline.accesses import pair, proxy, scope
from consan.reports.timeline.barriers import misuse, waiting
from consan.reports.timeline.memory import lifetime, outside, uninitialised
from consan.reports.timeline.picture import Timeline, steps

__all__ = ["Timeline", "build", "steps"]

_SHAPES: Final[dict[str, Callable[[Finding], Timeline]]] = {
    each.__name__: each for each in (pair, proxy, scope, uninitialised, outside, misuse, waiting, lifetime)
}


def build(finding: Finding) -> Timeline | None:
    """The picture of a finding. None if the finding names neither an access nor a waiter."""
    if not finding.pair:
        return waiting(finding) if finding.waiters else None
    return _SHAPES[entry_of(finding.kind).shape](finding)
