"""Which clusters of a launch are compared at a time, where the logs of all would be too many bytes.

If nothing orders CTAs, they are divided into sets, and two sets at a time are compared. A race is between two CTAs, or within one:
some pair of sets has both. Pairs that one launch has no time for are left to later launches of its shape, which are taken to do the same.

A launch whose logs have no room on the device is looked at in slices: in each launch of a shape other CTAs have logs. All
threads store their hashes. So a CTA without a log that did what another one did, in this launch or in an earlier one, is known.

- Within CTAs (shared memory) a slice is two neighbouring sets. All slices together have each CTA.
- Between CTAs that nothing orders (global memory) a slice is any pair of sets. A race is between two CTAs, or within one: some pair has
  both.

A launch that can be repeated with the same input has all slices by itself. Other launches of a shape are taken to do the same.

Not divided: launches whose CTAs may synchronise through memory. Each access may be ordered by what any other CTA did.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import field
from typing import Any, Final, TypeVar

from consan.checker.compiled.patience import Patience
from consan.checker.compiled.replay import MOST_SHARED, History
from consan.checker.logs.log_lines import LaunchSlice
from consan.dataclass import dataclass
from consan.toolchain.host_memory import available_bytes

AT_ONCE, _MANY_AT_ONCE = 16, 64  # histories that are read at once, and those whose logs are short
_SHORT_LOG: Final = 1 << 20  # bytes
MOST_AT_ONCE, _BYTES_AT_ONCE = 256, 1 << 28  # histories, and bytes of their logs: threads take time to start
LEAST: Final = 2  # clusters of a share: one alone meets no other
MOST_BYTES = 1 << 30  # of the logs that are replayed for global memory, however little memory is free: about 6 s
HURRIED_BYTES = 1 << 27  # the same, where the time is limited to some seconds
MORE = 4  # times as many, where there is memory
_UNHURRIED: Final = 60.0  # seconds
SAMPLED: Final = "sampled: {:,} of {:,} slices"
_SHARE: Final = 4  # a replay takes about three times as much memory as its logs, with them
MOST_READ_ONCE: Final = 1 << 28  # bytes of logs that are replayed for shared memory, and again for global memory


def most_bytes(patience: Patience) -> int:
    """The bytes of the logs that are replayed for global memory."""
    least = HURRIED_BYTES if patience.hurried and patience.seconds < _UNHURRIED else MOST_BYTES
    return max(least, min(MORE * least, (available_bytes() or 0) // _SHARE))


def spread(clusters: int, count: int) -> frozenset[int]:
    """`count` numbers out of so many, at equal distances; all if there are fewer."""
    return frozenset(number * clusters // count for number in range(count)) if count < clusters else frozenset(range(clusters))


Read = Callable[[Sequence[int]], Sequence[History]]
_Thing = TypeVar("_Thing")


@dataclass
class ReadOnce:
    """Reads the histories of clusters, and keeps them for the next reader: to compute a log takes longer than to replay it.

    `most_bytes`: of the logs that are kept.
    """

    histories: Read
    most_bytes: int
    count: int = AT_ONCE  # of the next histories that are replayed at a time
    _known: dict[int, History] = field(default_factory=dict)

    def in_turn(self, things: Sequence[_Thing]) -> Iterator[tuple[int, Sequence[_Thing]]]:
        """Some things, with the place of the first one: as many at a time as the size of the histories allows that were read last."""
        at = 0
        while at < len(things):
            some = things[at : at + self.count]
            yield at, some
            at += len(some)

    def read(self, clusters: Sequence[int]) -> list[History]:
        """The histories of some clusters."""
        missing = [each for each in clusters if each not in self._known]
        found = dict(zip(missing, self.histories(missing) if missing else (), strict=True))
        if found:
            largest = max(history.log.nbytes for history in found.values())
            self.count = max(AT_ONCE, min(MOST_AT_ONCE, _BYTES_AT_ONCE // max(1, largest)))
        for cluster, history in found.items():
            if history.log.nbytes <= self.most_bytes:
                self.most_bytes -= history.log.nbytes
                self._known[cluster] = history
        return [self._known[each] if each in self._known else found[each] for each in clusters]


@dataclass
class Pairs:
    """The pairs of sets of one shape. `sets`: how many, a power of two. `left`: pairs that no launch has compared."""

    sets: int
    most_bytes: int
    left: list[tuple[int, int]] = field(init=False)
    looks: int = 0  # launches that have compared some
    seconds: float = 0.0  # that this took

    def __post_init__(self) -> None:
        # For each difference every set has one other. Neighbours, whose tiles touch, come first.
        self.left = [(one, one ^ other) for other in range(1, self.sets) for one in range(self.sets) if one < one ^ other]

    @classmethod
    def fitting(cls, clusters: int, few: int, most_bytes: int) -> Pairs:
        """For so many clusters: the logs of so `few` are `most_bytes` long."""
        sets = 2
        while 2 * -(-clusters // sets) > max(few, LEAST):
            sets *= 2
        return cls(sets, most_bytes)

    def members(self, pair: tuple[int, int], clusters: Sequence[int]) -> list[int]:
        """The clusters of a pair."""
        count = len(clusters)
        return [each for number in pair for each in clusters[number * count // self.sets : (number + 1) * count // self.sets]]

    @property
    def why(self) -> str:
        """The part that was not compared; empty if all was."""
        if not self.left:
            return ""
        pairs = self.sets * (self.sets - 1) // 2
        done = f"{pairs - len(self.left):,} of {pairs:,} pairs of {self.sets} sets of its CTAs were compared"
        return f"{done}, because the logs of all take more than {self.most_bytes >> 20:,} MiB (--global on compares all)"


@dataclass
class Slices:
    """Those of one shape. `ctas`: of a launch; `count`: of a set; `pairs`: all pairs of sets are slices; `most_bytes`: of the logs.

    `left`: slices that no launch has had, as pairs of sets. `repeats`: the launch that comes is the last one once more.
    """

    ctas: int
    count: int
    pairs: bool
    most_bytes: int
    left: list[tuple[int, int]] = field(init=False)
    looks: int = 0  # launches that had one
    seconds: float = 0.0  # that their checks took
    repeats: bool = False
    retained: Any = None  # what a repeated launch has shown so far

    def __post_init__(self) -> None:
        self.left = self._all()

    @classmethod
    def fitting(cls, ctas: int, cluster: int, logs: int, *, pairs: bool, most_bytes: int, most: int) -> Slices | None:
        """Room for so many logs. `cluster`: its CTAs, which are in one set. None: one slice is too large, or there are more than `most`."""
        count = (logs - 1) // 2 // cluster * cluster
        return cls(ctas, count, pairs, most_bytes) if count >= cluster and _number(ctas, count, pairs=pairs) <= most else None

    def _all(self) -> list[tuple[int, int]]:
        sets = -(-self.ctas // self.count)
        if not self.pairs:
            return [(number, number + 1) for number in range(0, sets, 2)]
        # Neighbours, whose tiles touch, come first.
        return [(one, one + distance) for distance in range(1, sets) for one in range(sets - distance)] or [(0, 1)]

    @property
    def number(self) -> int:
        """How many there are."""
        return _number(self.ctas, self.count, pairs=self.pairs)

    @property
    def turn(self) -> tuple[int, int]:
        """The sets of the slice that the next launch has."""
        return self.left[0] if self.left else self._all()[self.looks % self.number]

    @property
    def next(self) -> LaunchSlice:
        """The slice that the next launch has."""
        first, second = (number * self.count for number in self.turn)
        return LaunchSlice(first, second, self.count)

    def looked(self, at: LaunchSlice, seconds: float) -> None:
        """A launch had a slice, which was looked at."""
        self.looks, self.seconds = self.looks + 1, self.seconds + seconds
        sets = at.first // self.count, at.second // self.count
        if at.count == self.count and sets in self.left:
            self.left.remove(sets)

    def begins(self) -> None:
        """A launch begins that may be repeated. Unless it is a repetition, it has all slices by itself."""
        if not self.repeats:
            self.restart()
        self.repeats = False

    def restart(self) -> None:
        """Nothing was looked at: another launch begins, or another report."""
        self.left, self.looks, self.seconds, self.repeats, self.retained = self._all(), 0, 0.0, False, None

    @property
    def why(self) -> str:
        """The part that was not looked at; empty if all was."""
        if not self.left:
            return ""
        done = SAMPLED.format(self.number - len(self.left), self.number)
        room = f"the logs of all CTAs take more than {_size(self.most_bytes)}"
        return f"{done} of its CTAs, because {room} (--trace-memory gives more; later launches of its shape have other slices)"


def _size(nbytes: int) -> str:
    return f"{nbytes >> 20:,} MiB" if nbytes >= 1 << 20 else f"{nbytes >> 10:,} KiB"


@dataclass
class PairsOfLaunches:
    """Those of a session, by kernel and shape of its launches."""

    _pairs: dict[Hashable, Pairs] = field(default_factory=dict)

    def of(self, shape: Hashable) -> Pairs | None:
        """The pairs of a shape; None: the logs of its launches fit."""
        return self._pairs.get(shape)

    def begin(self, shape: Hashable, pairs: Pairs) -> Pairs:
        """The logs of a launch do not fit. Gives the pairs of its shape."""
        return self._pairs.setdefault(shape, pairs)

    def forget(self) -> None:
        """Start anew, for the next report."""
        self._pairs.clear()


@dataclass
class Parts:
    """The parts of a launch of one shape that are compared. `read_histories`: gives those of clusters.

    `seconds`: for pairs behind the first. `pairs`: of its sets, if not all were compared at a time.
    """

    read_histories: Read
    shape: Hashable
    known: PairsOfLaunches
    seconds: float
    pairs: Pairs | None = None

    def read(self, wanted: Sequence[int], most_bytes: int, *, divides: bool) -> Iterator[dict[int, History]]:
        """The histories that are compared with each other: those of all clusters, or, if they may be divided, those of pairs of sets."""
        found, pairs = read_clusters(self.read_histories, wanted, most_bytes, divides=divides), self.known.of(self.shape)
        if isinstance(found, dict):
            if pairs is not None:
                pairs.left.clear()
            yield found
        elif divides and found >= LEAST:
            self.pairs = pairs or self.known.begin(self.shape, Pairs.fitting(len(wanted), found, most_bytes))
            yield from self._read(wanted, self.pairs)

    def _read(self, wanted: Sequence[int], pairs: Pairs) -> Iterator[dict[int, History]]:
        left, began, before = list(pairs.left or Pairs(pairs.sets, pairs.most_bytes).left), time.monotonic(), pairs.seconds
        pairs.looks += 1
        for pair in left:
            members = pairs.members(pair, wanted)
            read = (self.read_histories(members[at : at + AT_ONCE]) for at in range(0, len(members), AT_ONCE))
            try:
                yield dict(zip(members, itertools.chain.from_iterable(read), strict=True))
            finally:  # the reader may leave
                pairs.seconds = before + time.monotonic() - began
            if pair in pairs.left:
                pairs.left.remove(pair)
            if time.monotonic() - began > self.seconds:
                return


def _number(ctas: int, count: int, *, pairs: bool) -> int:
    """How many slices a launch has whose sets have so many CTAs."""
    sets = -(-ctas // count)
    return max(1, sets * (sets - 1) // 2) if pairs else -(-sets // 2)


def read_clusters(read: Read, clusters: Sequence[int], most_bytes: int, *, divides: bool) -> dict[int, History] | int:
    """The histories of clusters by their numbers, or about how many of them have logs of `most_bytes`, if all have more.

    `divides`: the caller can take a part of them, and wants to know soon.
    """
    found, nbytes = dict[int, History](), 0
    while len(found) < len(clusters):
        short = 0 < nbytes < len(found) * _SHORT_LOG
        some = clusters[len(found) :][: _MANY_AT_ONCE if short else AT_ONCE]
        found |= zip(some, read(some), strict=True)
        nbytes = sum(history.log.nbytes for history in found.values())
        few = most_bytes * len(found) // max(1, nbytes)
        if any(found[cluster].shared_bytes > MOST_SHARED for cluster in some):
            return 0
        if few < (len(clusters) if divides else len(found)):
            return few
    return found
