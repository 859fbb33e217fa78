"""Launches that a process of a native program makes without a question to the server.

A question costs two processes that are woken twice. A launch needs none if the server would let it go at once, with nothing to note but
that it was made: it is known what it does (session/repeated_launch.py), and it adds nothing to the order of streams. The server puts such
a launch into a table that both processes map, as the Python path arms one in C (consan/backends/armed.py): the kernel, its sizes, context
and stream, and the values of all parameters, where these decide. The interposer (source/unasked.h) makes launches that are equal, and
counts them in the table.

An entry is taken back before the answer to the request that has changed what it rests on: a call that orders streams, a module that is
unloaded, memory that is shared. Sessions take entries back by themselves, too, when they count or forget launches. The count of an entry
and whether it is open are one word, so each launch is counted, or asks. The table outlives the process.

Without a server nothing is taken back: what was known stays known, and the program runs on without a report.
"""

from __future__ import annotations

import functools
import mmap
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import field
from typing import Any, Final

import numpy as np

from consan.backends.armed import ArmedLaunch, Arming, Lent, MadeLaunches, Values, armed_functions
from consan.dataclass import dataclass
from consan.session.repeated_launch import RepeatedLaunch, SilentLaunches

_MOST: Final = 256  # entries, of source/unasked.h
_MOST_SETS: Final = 32  # of values of the parameters, of launches that are alike
_HEAD: Final = struct.Struct("<QQ")  # the word, and the kernel that the program launches
_ENTRY: Final = struct.Struct("<QQQ10III")  # the kernel to launch, context, stream, sizes; parameters, and bytes of what is behind
_VALUES: Final = 1904  # bytes behind it
_SIZE: Final = struct.Struct("<I")  # of a parameter, before its value
TABLE_BYTES: Final = _MOST * (_HEAD.size + _ENTRY.size + _VALUES)
_NUMBER: Final = 32  # the bits of a word below its number


@dataclass(frozen=True)
class LaunchKey:
    """The facts by which the interposer knows a launch, but for its parameters. `sizes`: grid, block, cluster, bytes of shared memory."""

    function: int
    context: int
    stream: int
    sizes: tuple[int, ...]


@dataclass(eq=False)
class UnaskedLaunches:
    """Those of one process. The caller of what changes the table holds the session's lock of launches in flight."""

    slots = 0  # of `ArmedLaunch`
    _pages: mmap.mmap | None = None
    _begin: int = 0
    _address: int = 0
    _exchange: Callable[[int, int], int] | None = None
    _last: int = 0  # number of an entry
    _used: dict[int, Entries] = field(default_factory=dict)  # by place
    _lent: list[RepeatedLaunch] = field(default_factory=list)
    _key: LaunchKey | None = None  # of the launch that is lent now

    def lie_in(self, pages: mmap.mmap, begin: int) -> None:
        """The table is in pages that both processes map."""
        functions = armed_functions()
        if functions is not None:
            self._pages, self._begin = pages, begin
            self._address = int(np.frombuffer(pages, np.uint8).ctypes.data) + begin
            self._exchange = lambda at, value: int(functions.call("consan_exchange", self._address + at, value))

    def lend(self, repeated: RepeatedLaunch, key: LaunchKey) -> None:
        """A launch was made that was known. Let the process make those that are equal."""
        alike, asks = repeated.alike, repeated.asks or repeated.alike.asks
        if self._exchange is None or not isinstance(alike, SilentLaunches) or not alike.by_itself or (asks and repeated.args is None):
            return
        values = repeated.args or () if asks else ()
        with alike.lock:
            if _changed(repeated):
                return
            if len(self._used) == _MOST:
                self.take_back()
            self._key = key
            if alike.armed is None:
                alike.once_over(functools.partial(self._takes_back, alike))
                alike.arm(Arming(self, key.sizes, values, 0, None))
                self._lent += [repeated] * (alike.armed is not None)
            elif isinstance(alike.armed, Entries):
                alike.armed.add(key, values)

    def review(self) -> None:
        """Behind a request that may have changed what the entries rest on. That is the same for all of them."""
        self._lent = [each for each in self._lent if each.alike.armed is not None]
        if self._lent and _changed(self._lent[0]):
            self.take_back()

    def take_back(self) -> None:
        """Take all entries back."""
        lent, self._lent = self._lent, []
        for each in lent:
            with each.alike.lock:
                each.alike.take_back()

    def arm(self, arming: Arming, lent: Lent[Any]) -> ArmedLaunch | None:
        """Let the process make launches. None: what they need cannot be said to it."""
        assert self._key is not None
        if lent.slots or _is_over(lent):
            return None
        entries = Entries(self, lent.instead)
        return entries if entries.add(self._key, tuple(arming.values)) else None

    def _takes_back(self, alike: SilentLaunches) -> None:
        with alike.lock:
            self.take_back()

    def open(self, entries: Entries, key: LaunchKey, values: Values, instead: int) -> int | None:
        """Make an entry. Gives its place; None: it has no room."""
        data = b"".join(_SIZE.pack(len(each)) + each for each in values)
        place = next((each for each in range(_MOST) if each not in self._used), None)
        if self._pages is None or self._exchange is None or place is None or len(data) > _VALUES:
            return None
        self._used[place] = entries
        self._last = self._last % ((1 << _NUMBER) - 1) + 1
        _ENTRY.pack_into(self._pages, self._at(place), instead, key.context, key.stream, *key.sizes, len(values), len(data))
        self._pages[self._at(place) + _ENTRY.size : self._at(place) + _ENTRY.size + len(data)] = data
        _HEAD.pack_into(self._pages, self._begin + place * _HEAD.size, 0, key.function)
        self._exchange(place * _HEAD.size, self._last << _NUMBER)
        return place

    def close(self, place: int) -> int:
        """Take an entry back. Gives how many launches were made."""
        assert self._exchange is not None
        del self._used[place]
        return self._exchange(place * _HEAD.size, 0) & (1 << _NUMBER) - 1

    def _at(self, place: int) -> int:
        return self._begin + _MOST * _HEAD.size + place * (_ENTRY.size + _VALUES)


@dataclass(eq=False)
class Entries:
    """The entries of launches that are alike, by the values of their parameters."""

    table: UnaskedLaunches
    instead: int
    slots: int = 0
    _places: dict[tuple[LaunchKey, Values], int] = field(default_factory=dict)

    def add(self, key: LaunchKey, values: Values) -> bool:
        """One more. False: there is no room."""
        if (key, values) not in self._places and len(self._places) < _MOST_SETS:
            place = self.table.open(self, key, values, self.instead)
            self._places |= {} if place is None else {(key, values): place}
        return (key, values) in self._places

    def begin(self) -> int:
        """A launch that is asked for is made as before."""
        return 0

    def end(self, *, made: bool) -> None:
        """There are no slots."""

    def take_back(self) -> MadeLaunches:
        """The launches that were made."""
        places, self._places = self._places, {}
        launches = Counter[Values]()
        for (_, values), place in places.items():
            launches[values] += self.table.close(place)
        return MadeLaunches(+launches, 0, 0.0, 0, 0, None, ())


def _is_over(lent: Lent[Any]) -> bool:
    """Whether others are to make no such launch: entries are taken back later."""
    return lent.over is not None and bool(lent.over.value)


def _changed(repeated: RepeatedLaunch) -> bool:
    """Whether a launch may have something new to record."""
    peers = repeated.frameworks.peers
    return peers.of_process or peers.shares or repeated.differs()
