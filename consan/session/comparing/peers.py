"""Launches that may reach memory which another GPU, or another process, reaches too (SEMANTICS 12, R-RK1, R-RK6).

Those of one process are compared if their accesses are known (followed_streams.py). Else the report is `incomplete` with the reason. Its
parameters decide: each word that the driver
knows as an address has a device. A kernel whose addresses do not all follow from its parameters may reach such memory if the program has
mapped some: by peer access, by a handle of another process, or as a multicast object.

Memory that this process shares with others is known by its addresses, wherever it lies (consan/backends/contexts.py).

Not seen: mapped memory without CUPTI, which reports the calls that map it.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass
from consan.ranges.pointed import pointed_words
from consan.session.comparing.array_rows import ByRows
from consan.session.comparing.followed_streams import FollowedStreams

if TYPE_CHECKING:
    from consan.backends.base import Contexts
    from consan.checker.compiled.concurrent_launches import Rows
    from consan.session.modules.parameters import Asked, Parameters
    from consan.session.modules.prepared import Prepared

_WORD: Final = 8  # bytes
_PAGE: Final = 21  # bits of an address within a page of the device
_MOST_PAGES: Final = 64  # whose holders the driver is asked for
_MOST_LAUNCHES: Final = 1024  # whose ways to memory of others are kept
NOT_COMPARED: Final = "it is not compared with launches of other GPUs"
_OF_PROCESSES: Final = "what other processes do there is not known"
_UNSEEN: Final = "all its accesses are not known, or its streams are not followed"
_LOADED: Final = "by a pointer that is no parameter"
_UNKNOWN: Final = "(its parameters are not known)"


@dataclass
class PeerMemory:
    """The memory that launches of one session reach. `contexts`: None where there is one device."""

    contexts: Contexts | None
    wanted: bool  # races in global memory are looked for
    streams: FollowedStreams
    _follows: dict[tuple[int, str], bool] = field(default_factory=dict)  # by kernel: all its addresses follow from its parameters
    _ways: dict[tuple[int, str, Parameters | None], str] = field(default_factory=dict)  # by launch: how it reaches memory of others
    _met: bool = False  # a launch was given memory of another GPU of the process
    _others_know: ByRows[bool] = field(default_factory=ByRows)
    _changes: tuple[int, int, bool] = (0, 0, False)  # of that memory, of windows and of contexts, since when they do not

    def __post_init__(self) -> None:
        self.memory = self.streams.with_processes

    def reached(self, prepared: Prepared, entry: str, asked: Asked) -> str:
        """How a launch may reach memory of others; empty: it does not. `asked`: reads its parameters."""
        if (
            self.contexts is None
            or not self.wanted
            or (self.contexts.alone and self.streams.log is None and not self.streams.with_processes.shared)
        ):
            return ""
        if self._state != self._changes or len(self._ways) > _MOST_LAUNCHES:
            self._changes, self._ways = self._state, {}
        launch = prepared.number, entry, asked()
        if launch not in self._ways:
            self._ways[launch] = self._way(prepared, *launch[1:])
        return self._ways[launch]

    def _way(self, prepared: Prepared, entry: str, parameters: Parameters | None) -> str:
        reached = next(self._reached(parameters or ()), "")
        if not reached and self._may_reach(prepared, entry, parameters):
            reached = f"it may reach memory of another GPU {_UNKNOWN if parameters is None else _LOADED}"
        return reached

    @functools.cached_property
    def _alone(self) -> bool:
        return not self.wanted or self.contexts is None or self.contexts.alone

    @property
    def of_process(self) -> bool:
        """Whether a launch may reach memory of another GPU that this process uses.

        Until a call or a parameter shows that it does, it uses one of those that it sees: each call that puts work into another context, or
        lets a context reach another one, is followed.
        """
        if self._alone:
            return False
        assert self.contexts is not None
        return self._met or self.streams.needs_none or self.memory.peers or self.contexts.several or self.streams.several_devices

    @property
    def shares(self) -> bool:
        """Whether each launch may reach memory of other processes."""
        return self.wanted and self.contexts is not None and self.memory.shared

    def may_reach(self, prepared: Prepared, entry: str, args: Parameters | None) -> bool:
        """Whether a launch with these parameters may reach memory of others. None: they are not known."""
        seen = args is not None and not self.streams.needs_none and not self.streams.several_devices
        return not seen or bool(self.reached(prepared, entry, lambda: args))

    @property
    def _state(self) -> tuple[int, int, bool]:
        """Another one whenever memory of other processes changes, there is another window, or a second context."""
        several = self.contexts is not None and self.contexts.several
        return self.memory.changes, 0 if self.streams.log is None else len(self.streams.log.windows) + 1, several

    @property
    def why_not(self) -> str:
        """Why such a launch is not checked in full."""
        return f"{NOT_COMPARED}: {_OF_PROCESSES if self.streams.with_processes.shared else _UNSEEN}"

    def others_know(self, rows: Rows | None) -> bool:
        """Whether others may compare a launch with these accesses: all that it shares with other processes is in windows that they know."""
        if rows is None or not self.streams.with_processes.shared:
            return rows is not None
        return self._others_know.of(rows, (self._state, self.contexts), lambda: self._knows_others(rows))

    def _knows_others(self, rows: Rows) -> bool:
        outside = np.ones(len(rows), np.bool_) if self.streams.log is None else self.streams.log.outside(rows)
        addresses, nbytes = rows["address"][outside], rows["bytes"][outside]
        return not (self.streams.with_processes.touched(addresses, nbytes) or self._of_other_gpus(addresses))

    def _of_other_gpus(self, addresses: npt.NDArray[np.uint64]) -> bool:
        """Whether some accesses may be to memory of other GPUs."""
        assert self.contexts is not None
        pages = np.unique(addresses >> np.uint64(_PAGE))
        return len(pages) > _MOST_PAGES or any(self.contexts.holder(int(page) << _PAGE) for page in pages)

    def _reached(self, parameters: Parameters) -> Iterator[str]:
        assert self.contexts is not None
        for number, word in _words(parameters):
            if (log := self.streams.log) is not None and (window := log.holding(word)) is not None:
                yield f"parameter {number} points to {window.name}"
            elif what := self.streams.with_processes.holder(word):
                yield f"parameter {number} points to {what}"
            elif holder := self.contexts.holder(word):
                self._met = True
                yield f"parameter {number} points to memory of {holder}"

    def _may_reach(self, prepared: Prepared, entry: str, parameters: Parameters | None) -> bool:
        assert self.contexts is not None
        mapped = self.streams.with_processes
        return (mapped.peers or mapped.shared or self.contexts.several) and (parameters is None or not self._follows_from(prepared, entry))

    def _follows_from(self, prepared: Prepared, entry: str) -> bool:
        """Whether all addresses of a kernel follow from its parameters."""
        key = prepared.number, entry
        if key not in self._follows:
            function = next(each for each in prepared.instrumented.module.functions if each.name == entry and each.body is not None)
            self._follows[key] = bool(pointed_words(function))
        return self._follows[key]


def _words(parameters: Parameters) -> Iterator[tuple[int, int]]:
    """The words of the parameters that may be addresses, with the number of each parameter, from 0."""
    for number, value in enumerate(parameters):
        for (word,) in struct.iter_unpack("<Q", value[: len(value) // _WORD * _WORD]):
            yield number, word
