"""The streams in which a framework launches on a GPU, where what orders them is not known (SEMANTICS 12, R-GM14).

The program's calls of the driver order its streams (followed_streams.py). If a call is not seen, or not understood, two
launches that are ordered would look like a race. So launches of different streams are not compared then, and the report
says so of each kernel.
"""

from __future__ import annotations

from dataclasses import field
from typing import Final

from consan.backends.base import DEFAULT_STREAMS
from consan.dataclass import dataclass
from consan.session.comparing.comparisons import Comparisons

_NOT_COMPARED: Final = "launches of different streams are not compared on a GPU"


@dataclass
class StreamsSeen:
    """The streams since the last report. `why`: what is missing for a comparison; empty: nothing."""

    comparisons: list[Comparisons]  # of each context
    why: str = ""
    _streams: set[int] = field(default_factory=set)

    def launched(self, stream: int) -> None:
        """A kernel is launched in a stream."""
        self._streams.add(0 if stream in DEFAULT_STREAMS else stream)
        self._tell()

    def stops(self, why: str) -> None:
        """From now on something is missing for a comparison."""
        self.why = self.why or why
        self._tell()

    def forget(self) -> None:
        """Start anew, for the next report."""
        self._streams.clear()

    def _tell(self) -> None:
        if self.why and len(self._streams) > 1:
            for each in self.comparisons:
                each.streams_lack(f"{_NOT_COMPARED}: {self.why}")
