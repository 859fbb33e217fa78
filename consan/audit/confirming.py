"""Whether errors that were found at smaller sizes are there at the published ones: those of the source itself.

A file whose sizes were made smaller, and that shows an error, runs again with its own sizes. The first CTAs of each launch start, few at
first and more as long as there is time. A finding of the same kernel and kind with a line of the first is the same one.

A finding that is not there although all of the launch was checked becomes a warning, and its row is not clean: the kernel is wrong for
sizes that its author does not publish, or consan's sizes are wrong for the kernel. One that nobody could confirm in time stays an error,
unless it is about the bounds of memory: a size that was not made smaller beside one that was makes such an error of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from consan.audit import rows
from consan.audit.rows import FileEvents, unqualified_name
from consan.reports.model import VIOLATIONS

CONFIRMED: Final = "confirmed"
NOT_IN_TIME: Final = "not confirmed: budget"
NOT_THERE: Final = "not at the published shape"
STATES: Final = (CONFIRMED, NOT_IN_TIME, NOT_THERE)
"""The states of an error. The first one that an error of a row has is the state of the row."""
WHOLE: Final = 1 << 62
STEPS: Final = (1 << 12, 1 << 16, WHOLE)
"""Threads in the CTAs of a launch that start: of the first run with published sizes, of the second, ..."""

_OF_BOUNDS: Final = "out-of-bounds"
_Place = tuple[str, str, frozenset[int]]


class Confirmation:
    """The states of the errors of a file. The errors are in the events of its first run."""

    def __init__(self, events: FileEvents) -> None:
        self._events = events
        state = NOT_IN_TIME if events.smaller else CONFIRMED
        self.states = {place: state for place, _ in _errors(events)}

    @property
    def open(self) -> bool:
        """Whether there are errors that another run may confirm."""
        return any(state == NOT_IN_TIME for state in self.states.values())

    def confirms(self, again: FileEvents) -> bool:
        """Whether a run with the published sizes has shown all errors."""
        self._take(again)
        return not self.open

    def take(self, again: FileEvents, *, ended: bool) -> None:
        """A run with the published sizes. `ended`: by itself."""
        self._take(again)
        if not ended or not again.done or again.failures:
            return
        partly = {unqualified_name(kernel) for kernel, launches in again.launches.items() if any(each["incomplete"] for each in launches)}
        for place, state in self.states.items():
            if state == NOT_IN_TIME and place[0] not in partly:
                self.states[place] = NOT_THERE

    def _take(self, again: FileEvents) -> None:
        found = [place for place, _ in _errors(again)]
        for place in self.states:
            if any(place[:2] == other[:2] and (place[2] & other[2] or place[2] == other[2]) for other in found):
                self.states[place] = CONFIRMED

    def apply(self) -> None:
        """Give each error of the events its state. An error that smaller sizes may have caused becomes a warning."""
        for place, finding in list(_errors(self._events)):
            finding["confirmed"] = state = self.states[place]
            if state == NOT_THERE or (state == NOT_IN_TIME and finding["kind"] == _OF_BOUNDS):
                finding["severity"] = "warning"
                finding["message"] += " (at smaller sizes than the published ones)"
        for launch in (each for launches in self._events.launches.values() for each in launches):
            found = {each["severity"] for each in launch["findings"] if each.get("confirmed")}
            if launch["verdict"] == VIOLATIONS and found == {"warning"}:
                launch["verdict"] = rows.SMALLER


class ResultConfirmation:
    """Whether results differ from those of the reference at the published shape, too. A run with all CTAs shows it."""

    def __init__(self, events: FileEvents) -> None:
        self._events = events
        self._state = (NOT_IN_TIME if events.smaller else CONFIRMED) if events.wrong else ""

    @property
    def open(self) -> bool:
        """Whether another run may confirm it."""
        return self._state == NOT_IN_TIME

    def take(self, again: FileEvents) -> None:
        """A run with the published sizes, which may not have come to the comparison."""
        if self.open and (again.wrong or again.error is not None):
            self._state = CONFIRMED if again.wrong else NOT_THERE

    def apply(self) -> None:
        """Tell it in the note of the result's row. One that is right at the published shape is not `wrong result`."""
        if self._state:
            self._events.wrong += f" ({self._state})"
            self._events.wrong_verdict = rows.SMALLER if self._state == NOT_THERE else rows.WRONG


def _errors(events: FileEvents) -> Iterator[tuple[_Place, dict[str, Any]]]:
    """The errors of real launches: the kernel, the kind and the lines, and the finding itself."""
    for kernel, launches in events.launches.items():
        for launch in launches:
            for each in launch["findings"]:
                if each["severity"] == "error":
                    yield (unqualified_name(kernel), each["kind"], frozenset(each["lines"])), each
