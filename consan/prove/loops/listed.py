"""Accesses in loops of few rounds, as a list: the address of each thread in each round.

An index that goes round with the block (`i = threadIdx.x + 128 * round`) and is then permuted (`i / 16`, `i % 16`, `^`) is slow to decide
for a solver. It says how many rounds there are at most; the places of each thread in each of them are computed here. A condition that does
not follow from these numbers is left out: it could only leave out accesses.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_left
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from consan.dataclass import dataclass
from consan.prove.solver import Formula, conjuncts
from consan.prove.step import ThreadAccess
from consan.prove.tables import WARP, Table, ThreadTables

_MOST_ROUNDS: Final = 64
_MOST_PLACES: Final = 1 << 14  # threads, times rounds
_MOST_BYTES: Final = 1 << 22


@dataclass(frozen=True)
class ListedPlaces:
    """The first bytes of an access, each with its thread."""

    first: Table
    threads: Table
    nbytes: int

    def stay(self, nbytes: int) -> bool:
        """Whether all are within so many bytes."""
        return not len(self.first) or bool(self.first.min() >= 0 and self.first.max() + self.nbytes <= nbytes)

    def meet(self, other: ListedPlaces, *, same: bool, warps: bool) -> bool | None:
        """Whether two threads, with `warps` of two warps, or with `same` also one thread, may meet; None: there are too many bytes."""
        if not len(self.first) or not len(other.first):
            return False
        low = min(self.first.min(), other.first.min())
        end = max(self.first.max() + self.nbytes, other.first.max() + other.nbytes)
        if max(end - low, len(self.first) * self.nbytes, len(other.first) * other.nbytes) > _MOST_BYTES:
            return None
        owners, others = ((each.threads // WARP if warps else each.threads) for each in (self, other))
        least, most = np.full(end - low, np.iinfo(np.int64).max), np.full(end - low, -1)
        for byte in range(self.nbytes):
            np.minimum.at(least, self.first - low + byte, owners)
            np.maximum.at(most, self.first - low + byte, owners)
        for byte in range(other.nbytes):
            at = other.first - low + byte
            if ((most[at] >= 0) & (same | (least[at] != others) | (most[at] != others))).any():
                return True
        return False


class RoundTables(ThreadTables):
    """Computes terms for each thread and each of some rounds."""

    def __init__(self, tables: ThreadTables, rounds: dict[str, int], path: Formula) -> None:
        """`rounds`: how many there are at most, by the numbers of iterations. `path`: the condition of the access."""
        self.symbols = tables.symbols
        self._held = conjuncts(path)
        counts = np.meshgrid(*(np.arange(each) for each in rounds.values()), indexing="ij")
        self.threads, many = tables.threads, math.prod(rounds.values())
        self.own = {name: np.repeat(each, many) for name, each in tables.own.items()}
        self.own |= {name: np.tile(each.ravel().astype(object), tables.threads) for name, each in zip(rounds, counts, strict=True)}
        self.numbers = np.repeat(np.arange(tables.threads), many)
        self._known: dict[int, tuple[Formula, Any]] = {}

    def _variable(self, name: str) -> Any:
        """Also what is assumed to fit, where that holds whenever the access takes place."""
        fits = self.symbols.fits.get(name)
        if fits is not None and conjuncts(fits.path).keys() <= self._held.keys():
            return self.of(fits.term)
        return super()._variable(name)


def places_of(access: ThreadAccess, tables: ThreadTables, rounds: dict[str, int]) -> ListedPlaces | None:
    """The places of an access; None: they follow from more than the thread and the round."""
    many = tables.threads * math.prod(rounds.values())
    if many > _MOST_PLACES:
        return None
    computed = RoundTables(tables, rounds, access.path)
    first = computed.of(access.offset.term)
    if first is None:
        return None
    held = np.ones(many, bool)
    known = [fact for name in rounds for fact in tables.symbols.facts[name]]
    for each in (*conjuncts(access.path).values(), *known):
        found = computed.of(each)
        held &= True if found is None else np.asarray(found, bool)
    places = np.broadcast_to(np.asarray(first, object), (many,))[held]
    if len(places) and max(map(abs, places)) >= _MOST_BYTES:
        return None
    return ListedPlaces(places.astype(np.int64), computed.numbers[held], access.nbytes)


def few_rounds(access: ThreadAccess, always: Callable[[Formula], bool]) -> dict[str, int] | None:
    """How many rounds of each loop around an access there are at most; None: they may be many.

    `always`: whether a condition holds wherever a thread makes the access.
    """
    found = dict[str, int]()
    for count in access.rounds:
        if not always(count < _MOST_ROUNDS):
            return None
        found[str(count)] = 1 + bisect_left(range(1, _MOST_ROUNDS), True, key=functools.partial(_is_below, always, count))
    return found


def _is_below(always: Callable[[Formula], bool], count: Any, most: int) -> bool:
    return always(count < most)
