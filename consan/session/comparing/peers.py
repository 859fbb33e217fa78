"""Launches that may reach memory which another GPU, or another process, reaches too (SEMANTICS 12, R-RK1, R-RK6).

Those of one process are compared if their accesses are known (followed_streams.py). Else the report is `incomplete` with the reason. Its
parameters decide: each word that the driver
knows as an address has a device. A kernel whose addresses do not all follow from its parameters may reach such memory if the program has
mapped some: by peer access, by a handle of another process, or as a multicast object.

Not seen: mapped memory without CUPTI, which reports the calls that map it, and what is mapped before the first kernel, when CUPTI is
subscribed to; memory of another process on the same GPU, unless it is mapped so; memory of this process that another one has opened.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from consan.ranges.pointed import pointed_words
from consan.session.comparing.followed_streams import FollowedStreams

if TYPE_CHECKING:
    from consan.backends.base import Contexts
    from consan.session.modules.parameters import Asked, Parameters
    from consan.session.modules.prepared import Prepared

_WORD: Final = 8  # bytes
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

    def reached(self, prepared: Prepared, entry: str, asked: Asked) -> str:
        """How a launch may reach memory of others; empty: it does not. `asked`: reads its parameters."""
        if self.contexts is None or not self.wanted or (self.contexts.alone and self.streams.log is None):
            return ""
        parameters = asked()
        reached = next(self._reached(parameters or ()), "")
        if not reached and self._may_reach(prepared, entry, parameters):
            reached = f"it may reach memory of another GPU {_UNKNOWN if parameters is None else _LOADED}"
        return reached

    @property
    def why_not(self) -> str:
        """Why such a launch is not checked in full."""
        return f"{NOT_COMPARED}: {_OF_PROCESSES if self.streams.maps_processes else _UNSEEN}"

    def others_know(self) -> bool:
        """Whether other processes may compare the last launch: all that it shares with them is in windows that they know."""
        if not self.streams.maps_processes:
            return True
        return self.streams.log is not None and self.contexts is not None and self.streams.log.covers(self.contexts.holder)

    def _reached(self, parameters: Parameters) -> Iterator[str]:
        assert self.contexts is not None
        for number, word in _words(parameters):
            if (log := self.streams.log) is not None and (window := log.holding(word)) is not None:
                yield f"parameter {number} points to {window.name}"
            elif holder := self.contexts.holder(word):
                yield f"parameter {number} points to memory of {holder}"

    def _may_reach(self, prepared: Prepared, entry: str, parameters: Parameters | None) -> bool:
        assert self.contexts is not None
        return (self.streams.maps_others or self.contexts.several) and (parameters is None or not self._follows_from(prepared, entry))

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
