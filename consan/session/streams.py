"""The order of launches in streams (SEMANTICS 12, R-GM14): which launches are over when another one starts.

A launch in a stream comes after all launches of the stream, after the events that the stream waits for, and after what the host has waited
for. A programmatic dependent may start while the launch before it runs, and knows what that one knew at its start; its
`griddepcontrol.wait` waits for the end of that one. If something else stands between the two in the stream, it is an ordinary launch.

Not followed: graphs, priorities, and streams of other libraries.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from consan._errors import UsageError

Numbers = frozenset[int]
_NONE: Numbers = frozenset()


@dataclass(frozen=True)
class Event:
    """A point of a stream. `over`: the launches that are over once it is reached."""

    over: Numbers


@dataclass(frozen=True)
class StreamPlace:
    """Where a launch stands: what is over when it starts, and what its `griddepcontrol.wait` waits for."""

    start: Numbers
    waited: Numbers

    def end(self, number: int, *, waits: bool) -> Numbers:
        """What is over when the launch is. `waits`: one of its threads waits for those before it."""
        return self.start | {number} | (self.waited if waits else _NONE)


@dataclass
class LaunchOrder:
    """The launches that the host knows to be over, and the number of the next launch."""

    host: Numbers = _NONE
    ends: dict[int, Numbers] = field(default_factory=dict)

    def note(self, place: StreamPlace, *, waits: bool) -> int:
        """A launch was made; its number."""
        number = len(self.ends)
        self.ends[number] = place.end(number, waits=waits)
        return number

    @property
    def everything(self) -> Numbers:
        """All launches so far."""
        return frozenset(self.ends)


class Stream:
    """A stream of `consan.check()`: its launches come one after the other, and beside those of other streams.

    Use it inside of one block of `consan.check()`, in `consan.launch(..., stream=s)`.
    """

    def __init__(self) -> None:
        self._timeline: LaunchOrder | None = None
        self._over: Numbers = _NONE
        self._last: tuple[int, StreamPlace] | None = None  # the launch that the next one directly follows

    def record(self) -> Event:
        """An event that is reached once all launches of the stream so far are over."""
        return Event(self._over)

    def wait(self, event: Event | Stream) -> None:
        """Let all later launches of this stream come after an event, or after all launches of another stream so far."""
        if not isinstance(event, (Event, Stream)):
            raise UsageError(f"{event!r} is no event: expected what Stream.record() returns, or a stream")
        self._over |= event.over if isinstance(event, Event) else event._over
        self._last = None

    def synchronize(self) -> None:
        """Let the host wait for all launches of the stream: all later launches come after them."""
        if self._timeline is not None:
            self._timeline.host |= self._over
        self._last = None

    def place(self, timeline: LaunchOrder, *, programmatic: bool) -> StreamPlace:
        """Where the stream's next launch stands."""
        if self._timeline not in (None, timeline):
            raise UsageError("a stream belongs to the block of consan.check() in which it was used first")
        self._timeline = timeline
        whole = self._over | timeline.host
        if not programmatic or self._last is None:
            return StreamPlace(whole, whole)
        number, before = self._last
        return StreamPlace(before.start | timeline.host, before.start | timeline.host | timeline.ends[number])

    def launched(self, number: int, place: StreamPlace) -> None:
        """The stream has made a launch."""
        assert self._timeline is not None
        self._over |= self._timeline.ends[number]
        self._last = number, place
