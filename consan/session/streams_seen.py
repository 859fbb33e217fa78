"""The streams in which a framework launches on a GPU: whether launches were left out of a comparison (SEMANTICS 12, R-GM14).

What orders two streams there is the program's calls of the driver, and not all of them are seen. Without one of them, two launches that are
ordered would look like a race. So launches of different streams are not compared, and the report says so of each kernel.

Not done yet: what the device shows by itself. If the mark before launch B was passed earlier than the mark behind launch A (both with
a time), no edge orders A before B, whatever the program has called. That was tried on an H200, with two kernels of 1 ms in two streams:
they overlapped by 0.5 to 0.7 ms without an edge, and B began 13 us after A with one. A finding needs the accesses of both launches too.
But the host waits for a launch that is recorded with global memory, so that it overlaps with nothing, and launches of one module are
made one after the other.
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
