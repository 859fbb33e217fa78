"""Launches that were not made or checked in full: what is looked at again with few CTAs, and errors that follow from memory that they left.

A launch that stays incomplete is made once more at the published shape, with the first CTAs of its grid: what these show is checked in
full. So is a kernel that no launch reached before the file's time was over. Its row stays incomplete if there is no error.

A launch that did not run to its end has not written all that it was to write. Errors of launches behind it that follow from values in
memory (addresses, indices, flags) are warnings. Memory is new for each run of `main`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from consan.audit.confirming import CONFIRMED
from consan.audit.rows import FileEvents, unqualified_name
from consan.reports.model import INCOMPLETE, VIOLATIONS

_OF_DATA: Final = frozenset({"global-race", "missing-order", "out-of-bounds", "uninitialized-read", "fault", "deadlock"})
_BEHIND: Final = " (behind a launch that was left out, or did not run to its end)"
_LEFT: Final = "an earlier launch was left out, or did not run to its end, so its errors are warnings"


def doubt(events: FileEvents) -> None:
    """Make warnings of errors that memory may have caused which an earlier launch left half written."""
    for launches in events.launches.values():
        sure = {_place(each) for launch in launches if not launch["behind"] for each in launch["findings"]}
        for launch in (each for each in launches if each["behind"]):
            _doubt(launch, sure)


def _doubt(launch: dict[str, Any], sure: set[tuple[Any, ...]]) -> None:
    for each in launch["findings"]:
        if each["severity"] == "error" and _follows(each) and _place(each) not in sure:
            each["severity"], each["message"] = "warning", each["message"] + _BEHIND
    if launch["verdict"] == VIOLATIONS and not _has_error(launch):
        launch["verdict"], launch["incomplete"] = INCOMPLETE, [*launch["incomplete"], _LEFT]


def _follows(finding: Mapping[str, Any]) -> bool:
    """Whether an error may follow from values in memory. Two writes meet by an index of memory, as a rule."""
    return finding["kind"] in _OF_DATA or (finding["kind"], finding["hazard"]) == ("data-race", "WAW")


def _place(finding: Mapping[str, Any]) -> tuple[Any, ...]:
    return finding["kind"], tuple(finding["lines"])


def _has_error(launch: Mapping[str, Any]) -> bool:
    return any(each["severity"] == "error" for each in launch["findings"])


class LaunchRepeats:
    """The kernels of a file that are to be launched again with few CTAs. `stopped`: the file's first run was."""

    def __init__(self, events: FileEvents, *, stopped: bool) -> None:
        self._events = events
        self._found: dict[str, list[dict[str, Any]]] = {}
        self._kernels = {unqualified_name(name) for name, launches in events.launches.items() if _is_open(launches)}
        if stopped:
            self._kernels |= set(events.kernels) - {unqualified_name(name) for name in events.launches}

    @property
    def open(self) -> bool:
        """Whether there are such kernels."""
        return bool(self._kernels)

    def take(self, again: FileEvents) -> None:
        """A run with the published sizes and few CTAs. There is one."""
        doubt(again)
        for name, launches in again.launches.items():
            if unqualified_name(name) in self._kernels:
                self._found[name] = launches
        self._kernels = set()

    def apply(self) -> None:
        """Add these launches to those of the first run."""
        for name, launches in self._found.items():
            for each in (finding for launch in launches for finding in launch["findings"]):
                each["confirmed"] = CONFIRMED if each["severity"] == "error" else ""
            self._events.launches.setdefault(name, []).extend(launches)


def _is_open(launches: list[dict[str, Any]]) -> bool:
    partly = any(launch["incomplete"] and not launch["guessed"] for launch in launches)
    return partly and not any(map(_has_error, launches))
