"""Words of global memory that a kernel accesses by strong operations alone, and how it uses them.

A flag: all that write it store one number that is not 0, by one instruction; where a comparison decides, only one that finds 0 can be the
first to store it. A lock: taken where a compare-and-swap finds 0, and set to 0 by one store of the thread that holds it. A counter: 1 is
added and nothing else. A number of rounds: stores in loops, each of a larger number in each round (growing.py).
So no two additions find one number, and each holds for all words that one pointer leads to. Accesses of other sizes
or scopes, and plain ones, race with these where they meet, and then nothing is proven.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final

from consan.dataclass import dataclass
from consan.instrument.isa import observing, row_of
from consan.prove.atomics.fences import WordFences
from consan.prove.atomics.growing import grows
from consan.prove.numbers import Base
from consan.prove.step import StrongThreadAccess, ThreadAccess


class WordUse(Enum):
    """Uses of a word."""

    FLAG = "flag"
    LOCK = "lock"
    COUNTER = "counter"
    ROUNDS = "number of rounds"


class WordAccess(Enum):
    """Ways to access a word."""

    READS = "reads"
    STORES = "stores"
    SWAPS = "swaps where it finds a number"
    ADDS = "adds 1"


@dataclass(frozen=True)
class SyncWord:
    """The words that one pointer leads to. `value`: what a flag is set to, or a lock where it is taken. `writer`: what sets a flag, frees a
    lock, or adds. `readers`: the accesses whose results are used. `others`: other writers, which have other words.
    """

    base: Base
    use: WordUse
    value: int
    writer: StrongThreadAccess
    readers: tuple[StrongThreadAccess, ...]
    others: tuple[StrongThreadAccess, ...] = ()


def sync_words(accesses: Sequence[ThreadAccess], fences: WordFences) -> list[SyncWord]:
    """The words that order others, among the accesses of a thread's life."""
    if any(each.base is None and each.space not in ("shared", "shared::cta") for each in accesses):
        return []
    return [each for base, its in words_alone(accesses).items() for each in _words(base, its, fences)]


def words_alone(accesses: Sequence[ThreadAccess]) -> dict[Base, list[StrongThreadAccess]]:
    """The strong accesses of global memory where there are no others, by what their addresses begin at."""
    by_base = defaultdict[Base, list[ThreadAccess]](list)
    for each in accesses:
        if each.base is not None and each.base[0] != "shared":
            by_base[each.base].append(each)
    strong = {base: [each for each in its if isinstance(each, StrongThreadAccess)] for base, its in by_base.items()}
    return {base: its for base, its in strong.items() if its and len(its) == len(by_base[base])}


def _words(base: Base, accesses: list[StrongThreadAccess], fences: WordFences) -> list[SyncWord]:
    kinds = [_kind(each) for each in accesses]
    if None in kinds:
        return []
    own = {kind: [each for each, its in zip(accesses, kinds, strict=True) if its is kind] for kind in WordAccess}
    found = _counter(base, own) or _lock(base, own, fences) or _flag(base, own, fences)
    return [found] if found is not None else _of_rounds(base, own, fences)


_OwnAccesses = dict[WordAccess, list[StrongThreadAccess]]
_ATOMICS: Final = {"exch": WordAccess.STORES, "cas": WordAccess.SWAPS, "add": WordAccess.ADDS}


def _kind(access: StrongThreadAccess) -> WordAccess | None:
    """None: it does something else."""
    row, constants = row_of(access.instruction), [None if each is None else each.constant for each in access.given]
    if row.is_load:
        return WordAccess.READS
    found = WordAccess.STORES if row.is_store else _ATOMICS.get(observing.operation_of(access.instruction, row))
    if found is WordAccess.ADDS:
        known = observing.commutes(access.instruction, row) and len(constants) == 1 and constants[0] in (0, 1)
        return (found if constants[0] else WordAccess.READS) if known else None
    count = 2 if found is WordAccess.SWAPS else 1
    known = len(constants) == count and access.given[-1] is not None and (constants[-1] is not None or found is WordAccess.STORES)
    return found if known else None


def _counter(base: Base, own: _OwnAccesses) -> SyncWord | None:
    adds = own[WordAccess.ADDS]
    if len(adds) != 1 or own[WordAccess.STORES] or own[WordAccess.SWAPS]:
        return None
    return SyncWord(base, WordUse.COUNTER, 1, adds[0], tuple(_with_results([*adds, *own[WordAccess.READS]])))


def _lock(base: Base, own: _OwnAccesses, fences: WordFences) -> SyncWord | None:
    """Taken by compare-and-swaps that find 0, and freed by one store of 0."""
    frees, locks = own[WordAccess.STORES], own[WordAccess.SWAPS]
    if own[WordAccess.ADDS] or len(frees) != 1 or not locks or frees[0].given[0] is None or frees[0].given[0].constant != 0:
        return None
    compared = [each.given[0].constant if each.given[0] is not None else None for each in locks]
    if any(each != 0 for each in compared) or any(_stored(each) == 0 for each in locks):
        return None
    acquire = all(fences.acquires(each) and each.seen is not None for each in locks)
    return SyncWord(base, WordUse.LOCK, 0, frees[0], tuple(locks)) if acquire and fences.releases(frees[0]) else None


def _flag(base: Base, own: _OwnAccesses, fences: WordFences) -> SyncWord | None:
    writers = [*own[WordAccess.STORES], *own[WordAccess.SWAPS]]
    if own[WordAccess.ADDS] or len(writers) != 1 or not (value := _stored(writers[0])) or not fences.releases(writers[0]):
        return None
    readers = tuple(_with_results([*own[WordAccess.READS], *writers]))
    return SyncWord(base, WordUse.FLAG, value, writers[0], readers)


def _of_rounds(base: Base, own: _OwnAccesses, fences: WordFences) -> list[SyncWord]:
    """Words of rounds, one for each writer."""
    writers, readers = own[WordAccess.STORES], tuple(_with_results(own[WordAccess.READS]))
    if own[WordAccess.ADDS] or own[WordAccess.SWAPS] or not all(grows(each) and fences.releases(each) for each in writers):
        return []
    return [SyncWord(base, WordUse.ROUNDS, 0, each, readers, tuple(other for other in writers if other is not each)) for each in writers]


def _with_results(accesses: Iterable[StrongThreadAccess]) -> Iterable[StrongThreadAccess]:
    """Those whose results are used."""
    return (each for each in accesses if each.seen is not None)


def _stored(access: StrongThreadAccess) -> int | None:
    """The number that an access stores, where it does."""
    last = access.given[-1]
    return None if last is None else last.constant


def swaps(access: StrongThreadAccess) -> bool:
    """Whether an access stores only where it finds a number."""
    return _kind(access) is WordAccess.SWAPS
