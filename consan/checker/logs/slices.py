"""Slices of a launch whose logs have no room: in each launch of a shape other CTAs have logs.

The CTAs are divided into sets of equal size, and those of two sets have logs (instrument/record/text/text.py). All threads store their
hashes. So a CTA without a log that did what another one did, in this launch or in an earlier one, is known.

- Within CTAs (shared memory) a slice is two neighbouring sets. All slices together have each CTA.
- Between CTAs that nothing orders (global memory) a slice is any pair of sets. A race is between two CTAs, or within one: some pair has
  both.

A launch that can be repeated with the same input has all slices by itself. Other launches of a shape are taken to do the same.

Not divided: launches whose CTAs may synchronise through memory. Each access may be ordered by what any other CTA did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass
from consan.instrument.record.text import text

SAMPLED: Final = "sampled: {:,} of {:,} slices"


@dataclass(frozen=True)
class Slice:
    """The CTAs that have logs: two runs of `count` each, from `first` and from `second` on."""

    first: int
    second: int
    count: int

    @property
    def slots(self) -> int:
        """How many logs there are. The last one is that of all other CTAs, and nobody reads it."""
        return 2 * self.count + 1

    def slots_of(self, ctas: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The number of each CTA's log, as the kernel computes it."""
        numbers = np.asarray(ctas, np.int64)
        one, other = (np.minimum((numbers - begin) % (1 << 32), self.count) for begin in (self.first, self.second))
        return np.where(one < self.count, one, self.count + other)

    def has(self, ctas: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether each CTA has a log."""
        return np.asarray(self.slots_of(ctas) < self.slots - 1)


@dataclass(frozen=True)
class LogSlots:
    """The places of the logs of a launch. `some`: the CTAs that have one; None: all."""

    ctas: int
    some: Slice | None

    @property
    def count(self) -> int:
        """How many logs of CTAs there are."""
        return self.ctas if self.some is None else self.some.slots

    def of(self, ctas: Sequence[int]) -> npt.NDArray[np.int64]:
        """The numbers of the logs of some CTAs, which have one."""
        if self.some is None:
            return np.asarray(ctas, np.int64)
        assert self.some.has(ctas).all()
        return self.some.slots_of(ctas)

    def has(self, clusters: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether each cluster has logs. `clusters`: the CTAs of each."""
        return np.ones(len(clusters), np.bool_) if self.some is None else np.asarray(self.some.has(clusters).all(axis=1))

    def given(self) -> dict[int, int]:
        """What the kernel is given, by the place in its variable."""
        some = self.some or Slice(0, 0, self.ctas)
        return {text.FIRST: some.first, text.SECOND: some.second, text.COUNT: some.count}


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
    kept: Any = None  # what a repeated launch has shown so far

    def __post_init__(self) -> None:
        self.left = self._all()

    @classmethod
    def fitting(cls, ctas: int, unit: int, logs: int, *, pairs: bool, most_bytes: int) -> Slices | None:
        """Room for so many logs. `unit`: CTAs that are in one set. None: one slice is too large."""
        count = (logs - 1) // 2 // unit * unit
        return cls(ctas, count, pairs, most_bytes) if count >= unit else None

    def _all(self) -> list[tuple[int, int]]:
        sets = -(-self.ctas // self.count)
        if not self.pairs:
            return [(number, number + 1) for number in range(0, sets, 2)]
        # Neighbours, whose tiles touch, come first.
        return [(one, one + distance) for distance in range(1, sets) for one in range(sets - distance)] or [(0, 1)]

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self._all())

    @property
    def turn(self) -> tuple[int, int]:
        """The sets of the slice that the next launch has."""
        return self.left[0] if self.left else self._all()[self.looks % self.number]

    @property
    def next(self) -> Slice:
        """The slice that the next launch has."""
        first, second = (number * self.count for number in self.turn)
        return Slice(first, second, self.count)

    def looked(self, at: Slice, seconds: float) -> None:
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
        self.left, self.looks, self.seconds, self.repeats, self.kept = self._all(), 0, 0.0, False, None

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
