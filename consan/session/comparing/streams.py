"""The order of launches in streams (SEMANTICS 12, R-GM14): which launches are over when another one starts.

A launch in a stream comes after all launches of the stream, after the events that the stream waits for, and after what the host has waited
for. A programmatic dependent may start while the launch before it runs, and knows what that one knew at its start; its
`griddepcontrol.wait` waits for the end of that one. If something else stands between the two in the stream, it is an ordinary launch.
A launch may record an event itself, which is reached while it runs: a launch behind that is a dependent, too, in whichever stream.

The streams of a program that a session runs are in program_streams.py. Not followed: graphs, and priorities.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from typing import Final

from consan._errors import UsageError
from consan.dataclass import dataclass


class Numbers:
    """Numbers of launches, as the bits of one integer that begins at the least, or below it. Does not change; goes from the least up."""

    __slots__ = ("_bits", "_first")

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        some = list(numbers)
        self._first = min(some, default=0)
        self._bits = sum(1 << each - self._first for each in set(some))

    def plus(self, number: int) -> Numbers:
        """With one more."""
        if not self._bits or number < self._first:
            return self | Numbers((number,))
        return _of(self._bits | 1 << number - self._first, self._first)

    def __or__(self, other: Numbers) -> Numbers:
        ahead = self._first - other._first
        if not other._bits or (ahead == 0 and self._bits | other._bits == self._bits):
            return self
        if not self._bits:
            return other
        if ahead < 0:
            return _of(self._bits | other._bits << -ahead, self._first)
        return _of(self._bits << ahead | other._bits, other._first)

    def __and__(self, other: Numbers) -> Numbers:
        ahead = self._first - other._first
        if ahead < 0:
            return _trimmed(self._bits >> -ahead & other._bits, other._first)
        return _trimmed(self._bits & other._bits >> ahead, self._first)

    def __sub__(self, other: Numbers) -> Numbers:
        ahead = self._first - other._first
        return _trimmed(self._bits & ~(other._bits >> ahead if ahead >= 0 else other._bits << -ahead), self._first)

    def __le__(self, other: Numbers) -> bool:
        return not self - other

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and number >= self._first and bool(self._bits >> number - self._first & 1)

    def __iter__(self) -> Iterator[int]:
        bits = self._bits
        while bits:
            lowest = bits & -bits
            yield self._first + lowest.bit_length() - 1
            bits ^= lowest

    def __len__(self) -> int:
        return self._bits.bit_count()

    def __bool__(self) -> bool:
        return self._bits != 0

    def __repr__(self) -> str:
        return f"Numbers({list(self)})"

    @property
    def least(self) -> int:
        """The least; the set is not empty."""
        return next(iter(self))


def _of(bits: int, first: int) -> Numbers:
    made = Numbers.__new__(Numbers)
    made._bits, made._first = bits, first
    return made


def _trimmed(bits: int, first: int) -> Numbers:
    """Without the bits below the least number: the least grows as a program runs."""
    if not bits:
        return NONE
    below = (bits & -bits).bit_length() - 1
    return _of(bits >> below, first + below)


NONE: Final = Numbers()


def _nothing() -> None:
    """Nobody wants to know."""


@dataclass(frozen=True)
class Event:
    """A point of a stream. `over`: the launches that are over once it is reached.

    `waited`: those that a `griddepcontrol.wait` of the launch behind it waits for.
    """

    over: Numbers
    waited: Numbers = NONE


@dataclass(frozen=True)
class StreamPlace:
    """The place of a launch in the order: the launches that are over when it starts, and those that its `griddepcontrol.wait` waits for."""

    start: Numbers
    waited: Numbers

    def end(self, number: int, *, waits: bool) -> Numbers:
        """The launches that are over when this one is. `waits`: one of its threads waits for those before it."""
        return (self.start | self.waited if waits else self.start).plus(number)


@dataclass(eq=False)
class LaunchOrder:
    """The launches that the host does not know to be over, with what is over once they are."""

    running: dict[int, Numbers] = field(default_factory=dict)
    everything: Numbers = NONE  # all that may still run
    asked: Numbers = NONE  # of these, those about which the host has had the answer that they run
    perhaps_over: Numbers = NONE  # what the host may know to be over, in a way that nobody sees
    count: int = 0  # of all launches
    recorded: int = 0  # their number when an event was recorded last, or was taken for one that stands for all so far
    changed: Callable[[], None] = _nothing  # is called when what is above has changed
    forgotten: int = 0  # how often some of them were
    turn: tuple[Stream | None, int] = (None, 0)  # the stream that has made all launches from a number on

    def takes_turn(self, stream: Stream) -> None:
        """A stream is about to make a launch."""
        if self.turn[0] is not stream:
            self.turn = stream, self.count

    def in_turn(self, stream: Stream, numbers: Numbers) -> bool:
        """Whether launches of a stream may still run, and behind them stands no event and no launch of another stream.

        Then nothing that comes later is behind some launches of the stream since these, and not behind the others.
        """
        first = max(self.recorded, self.turn[1])
        return self.turn[0] is stream and numbers <= self.everything and (not numbers or numbers.least >= first)

    def note(self, place: StreamPlace, *, waits: bool) -> int:
        """A launch was made; its number."""
        number, self.count = self.count, self.count + 1
        self.running[number], self.everything = place.end(number, waits=waits), self.everything.plus(number)
        self.changed()
        return number

    def note_event(self) -> None:
        """An event was recorded in a stream."""
        self.recorded = self.count
        self.changed()

    def host_waits(self, over: Numbers) -> None:
        """The host knows that launches are over: all later ones come after them."""
        gone = self.left(over)
        for each in gone:
            del self.running[each]
        self.everything -= gone
        self.forgotten += bool(gone)
        self.changed()

    def is_over(self, over: Numbers) -> bool:
        """The answer to the host's question whether launches are over: at first no, as a GPU may answer; if it asks again, yes."""
        left = self.left(over)
        new, self.asked = left - self.asked, (self.asked | left) & self.everything
        return not new

    def left(self, over: Numbers) -> Numbers:
        """Those that may still run."""
        return over & self.everything

    def last(self) -> int | None:
        """The last launch, if it may still run and no event was recorded behind it."""
        return self.count - 1 if self.count - 1 in self.running and self.recorded != self.count else None


class Stream:
    """A stream of `consan.check()`: its launches come one after the other, and may run at the same time as those of other streams.

    Use it inside of one block of `consan.check()`, in `consan.launch(..., stream=s)`.
    """

    name = ""  # in reports; empty: its number
    context = 0  # of the driver; 0: the first one
    graph: object = None  # whose nodes it does, if their edges are the program's own
    edge = " (second.wait(first.record()))"  # how a program lets one stream wait for another

    def __init__(self) -> None:
        self._timeline: LaunchOrder | None = None
        self._over: Numbers = NONE
        self._forgotten = 0  # how often launches were, when it looked last
        self._last: tuple[int, StreamPlace] | None = None  # the launch that the next one directly follows
        self._waited = NONE  # what a `griddepcontrol.wait` of the next launch waits for, by events

    def record(self) -> Event:
        """An event that is reached once all launches of the stream so far are over."""
        self._begins()
        self._ends()
        if self._timeline is not None:
            self._timeline.note_event()
        return Event(self._over)

    def begun(self, *, waited: bool) -> Event:
        """The event that the last launch, which was made just now, has recorded itself: it is reached once all its CTAs have begun.

        `waited`: a `griddepcontrol.wait` behind it waits for the end of the launch (CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT).
        """
        self._begins()
        if self._timeline is None or self._last is None or self._last[0] != self._timeline.count - 1:  # it is not compared
            return Event(self._over)
        self._timeline.note_event()
        number, place = self._last
        return Event(place.start, place.start | self._timeline.running.get(number, NONE) if waited else NONE)

    def wait(self, event: Event | Stream) -> None:
        """Let all later launches of this stream come after an event, or after all launches of another stream so far."""
        if not isinstance(event, (Event, Stream)):
            raise UsageError(f"{event!r} is no event: expected what Stream.record() returns, or a stream")
        self._begins()
        reached = event if isinstance(event, Event) else event.record()
        self._over |= reached.over if self._timeline is None else self._timeline.left(reached.over)
        self._waited |= reached.waited
        self._ends()
        self._last = None

    def synchronize(self) -> None:
        """Let the host wait for all launches of the stream: all later launches come after them."""
        self._begins()
        if self._timeline is not None:
            self._timeline.host_waits(self._over)
        self._last = None

    def place(self, timeline: LaunchOrder, *, programmatic: bool) -> StreamPlace:
        """The place of the stream's next launch."""
        if self._timeline not in (None, timeline):
            raise UsageError("a stream belongs to the block of consan.check() in which it was used first")
        self._timeline = timeline
        timeline.takes_turn(self)
        self._begins()
        if self._forgotten != timeline.forgotten:  # those are over for all
            self._over, self._waited, self._forgotten = timeline.left(self._over), timeline.left(self._waited), timeline.forgotten
        if not programmatic or self._last is None or self._last[0] not in timeline.running:
            return StreamPlace(self._over, self._over | self._waited if self._waited else self._over)
        number, before = self._last
        return StreamPlace(before.start, before.start | timeline.running[number])

    def launched(self, number: int, place: StreamPlace) -> None:
        """The stream has made a launch."""
        assert self._timeline is not None
        end = self._timeline.running[number]
        self._over = end if place.start is self._over else self._over | end  # sets of hundreds of launches
        self._last, self._waited = (number, place), NONE
        self._ends()

    @property
    def before_dependent(self) -> Numbers:
        """The launches that are over when what the stream is given next starts, if that is a programmatic dependent launch."""
        self._begins()
        last = self._last
        return self._over if last is None or self._timeline is None or last[0] not in self._timeline.running else self._over & last[1].start

    def put_behind(self, number: int) -> None:
        """A launch that stands for forgotten ones comes before the last launch of the stream, and all that follows."""
        self._over = self._over.plus(number)
        if self._last is not None:
            last, place = self._last
            self._last = last, StreamPlace(place.start.plus(number), place.waited.plus(number))

    def _begins(self) -> None:
        """An operation of the stream begins: a subclass adds what it waits for."""

    def _ends(self) -> None:
        """An operation of the stream was made: a subclass lets others wait for it."""


def on_two_devices(one: Stream | None, other: Stream | None) -> bool:
    """Whether two streams are of two devices, or two contexts of one."""
    return one is not None and other is not None and one.context != other.context


def all_behind(streams: Iterable[Stream], timeline: LaunchOrder) -> Numbers:
    """The launches that the next one of each stream comes behind."""
    return functools.reduce(operator.and_, (each.before_dependent for each in streams), timeline.everything)
