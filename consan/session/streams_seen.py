"""The streams in which a framework launches on a GPU: whether launches were left out of a comparison (SEMANTICS 12, R-GM14).

What orders two streams there is the program's calls of the driver, and not all of them are seen. Without one of them, two launches that are
ordered would look like a race. So launches of different streams are not compared, and the report says so of each kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from consan.session.recording import Recording

_LEGACY: Final = (0, 1)  # the handles of the default stream
_WHY: Final = "launches of different streams are not compared on a GPU"


@dataclass
class StreamsSeen:
    """The streams since the last report."""

    recording: Recording
    _streams: set[int] = field(default_factory=set)

    def launched(self, stream: int) -> None:
        """A kernel is launched in a stream."""
        self._streams.add(0 if stream in _LEGACY else stream)
        if len(self._streams) > 1:
            self.recording.of_streams = (_WHY,)

    def forget(self) -> None:
        """Start anew, for the next report."""
        self._streams.clear()
