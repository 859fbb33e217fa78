"""Whether threads meet in a byte that one of them writes, by the ranges of bytes of all accesses.

Accesses whose addresses follow from the CTA in the same way are a group: within one CTA their bytes are compared thread by thread, and then
all CTAs have the same runs of bytes, at other places. The runs of all CTAs that are written must be apart, and no read may reach into one,
but where a thread reads what only it writes. Two groups that meet are no proof, even where one thread is in both.

Accesses that may meet others of their kind (`Together`) are one range, and nothing else may meet them.

Accesses of different pointers are not compared here: `extents` has the range of bytes of each, and who knows the pointers compares them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass
from consan.ranges.accesses import SpreadAccess
from consan.ranges.forms import Together
from consan.ranges.walk import Path

Numbers = npt.NDArray[np.int64]
_MOST_ITEMS = 1 << 22  # accesses of single threads in a group, and runs of all CTAs
_PLACES = 48  # bits of a place in memory
_TOO_MANY = "its accesses have too many ranges"


class _Many(Exception):  # noqa: N818
    """There are more items than are compared."""


@dataclass(frozen=True)
class _Items:
    """Accesses of single threads in the first CTA of a group."""

    begin: Numbers
    nbytes: Numbers
    thread: Numbers

    @classmethod
    def of(cls, accesses: Sequence[SpreadAccess]) -> _Items:
        """Those of some accesses in the order of their bytes: each once, but for those that repeat."""
        if sum(len(access.threads) for access in accesses) > _MOST_ITEMS:
            raise _Many
        begin = np.concatenate([np.broadcast_to(each.of_thread + each.of_cta[0], each.threads.shape) for each in accesses])
        nbytes = np.repeat([each.nbytes for each in accesses], [len(each.threads) for each in accesses])
        thread = np.concatenate([each.threads for each in accesses])
        repeats = np.repeat([each.repeats for each in accesses], [len(each.threads) for each in accesses])
        order = np.lexsort((thread, nbytes, begin)) if (begin[1:] <= begin[:-1]).any() else np.arange(len(begin))
        begin, nbytes, thread, repeats = begin[order], nbytes[order], thread[order], repeats[order]
        new = np.ones(len(begin), np.bool_)
        new[1:] = (begin[1:] != begin[:-1]) | (nbytes[1:] != nbytes[:-1]) | (thread[1:] != thread[:-1]) | repeats[1:]
        return cls(begin, nbytes, thread) if new.all() else cls(begin[new], nbytes[new], thread[new])

    def runs(self) -> tuple[Numbers, Numbers]:
        """The ranges of bytes, apart and in order."""
        return united(self.begin, self.begin + self.nbytes)

    def are_disjoint(self) -> bool:
        """Whether no two of them overlap. They are in the order of their first bytes."""
        return bool((self.begin[1:] >= self.begin[:-1] + self.nbytes[:-1]).all())

    def outside(self, writes: _Items) -> _Items:
        """Those that do not lie in what the same thread writes."""
        keys = (writes.thread << _PLACES) + writes.begin
        order = np.argsort(keys)
        at = order[np.maximum(np.searchsorted(keys[order], (self.thread << _PLACES) + self.begin, side="right") - 1, 0)]
        inside = (writes.thread[at] == self.thread) & (writes.begin[at] <= self.begin)
        inside &= self.begin + self.nbytes <= writes.begin[at] + writes.nbytes[at]
        return _Items(self.begin[~inside], self.nbytes[~inside], self.thread[~inside])


@dataclass
class _Group:
    """Accesses of the same CTAs. `steps`: how far the addresses of each CTA are from those of the first."""

    steps: Numbers
    accesses: list[SpreadAccess] = field(default_factory=list)

    def ranges(self, items: _Items) -> tuple[Numbers, Numbers]:
        """The ranges of bytes of all CTAs."""
        begin, end = items.runs()
        if len(begin) * len(self.steps) > _MOST_ITEMS:
            raise _Many
        return (self.steps[:, None] + begin).ravel(), (self.steps[:, None] + end).ravel()


@dataclass
class PointerExtent:
    """The range of bytes that all accesses of a pointer are in, and the range of those that write. Empty: none do."""

    begin: int
    end: int
    write_begin: int = 0
    write_end: int = 0

    def include(self, begin: int, end: int, *, writes: bool) -> None:
        """Add an access."""
        self.begin, self.end = min(self.begin, begin), max(self.end, end)
        if writes:
            first = self.write_begin == self.write_end
            self.write_begin = begin if first else min(self.write_begin, begin)
            self.write_end = end if first else max(self.write_end, end)


def extents(paths: Iterable[Path]) -> dict[int | None, PointerExtent]:
    """The ranges of the pointers. None: of addresses that are numbers."""
    found: dict[int | None, PointerExtent] = {}
    known: dict[int, tuple[int, int]] = {}
    for stretch in {id(each.accesses): each for path in paths for each in path.stretches}.values():
        for access in stretch.accesses:
            if len(access.threads):
                begin, end = _hull(access, known)
                found.setdefault(access.base, PointerExtent(begin, end)).include(begin, end, writes=access.writes)
    return found


def _hull(access: SpreadAccess, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """The bytes from the first to the last of an access. `known`: of arrays that all accesses keep alive."""
    ends = []
    for part in (access.of_cta, access.of_thread):
        if id(part) not in known:
            known[id(part)] = (int(part.min()), int(part.max())) if part.size > 1 else (int(part[0]),) * 2
        ends.append(known[id(part)])
    (cta, last_cta), (thread, last_thread) = ends
    return cta + thread, last_cta + last_thread + access.nbytes


def meet(paths: Sequence[Path]) -> str:
    """Why it is not certain that no threads meet in the bytes of one pointer; empty if it is."""
    written = {access.base for path in paths for each in path.stretches for access in each.accesses if access.writes}
    groups: dict[int | None, list[_Group]] = {base: [] for base in written}
    for group in _groups(paths, written):
        groups[group.accesses[0].base].append(group)
    try:
        return next(filter(None, map(_meet, groups.values())), "")
    except _Many:
        return _TOO_MANY


def _groups(paths: Iterable[Path], written: set[int | None]) -> Iterator[_Group]:
    """The accesses of pointers that are written."""
    found: dict[tuple[int | None, bytes, bytes], _Group] = {}
    for path in paths:
        ctas = path.ctas.tobytes()
        for access in path.accessed(written):
            if len(access.threads):
                steps = np.broadcast_to(access.of_cta - access.of_cta[0], path.ctas.shape)
                group = found.setdefault((access.base, ctas, steps.tobytes()), _Group(steps))
                group.accesses.append(access)
    yield from found.values()


def _meet(groups: list[_Group]) -> str:
    written, reduced = list[tuple[Numbers, Numbers]](), dict[Together, list[tuple[Numbers, Numbers]]]()
    reads, single = list[tuple[_Group, _Items]](), list[tuple[_Group, SpreadAccess]]()
    for group in groups:
        writes = [access for access in group.accesses if access.writes and access.together is None]
        for kind in {access.together: None for access in group.accesses if access.together is not None}:
            items = _Items.of([access for access in group.accesses if access.together == kind])
            reduced.setdefault(kind, []).append(group.ranges(items))
        own = [access for access in group.accesses if not access.writes and access.own]
        others = [access for access in group.accesses if not access.writes and not access.own]
        if writes:
            items = _Items.of(writes)
            if not items.are_disjoint():
                return "threads of a CTA write the same bytes"
            written.append(group.ranges(items))
            reads += [(group, _Items.of(own).outside(items))] if own else []
        else:
            others += own
        single += [(group, access) for access in others]
    written += (united(*_in_order(each)) for each in reduced.values())
    if not written:
        return ""
    begin, end = _in_order(written)
    if (begin[1:] < end[:-1]).any():
        return "CTAs write the same bytes"
    near = ((group, _Items.of([access])) for group, access in single if _overlap_one(*_hull(access, {}), begin, end))
    reached = any(_reach(group, items, begin, end) for group, items in itertools.chain(reads, near))
    return "a thread reads what another one writes" if reached else ""


def _in_order(ranges: Sequence[tuple[Numbers, Numbers]]) -> tuple[Numbers, Numbers]:
    """Ranges in the order of their first bytes."""
    begin, end = (np.concatenate(column) for column in zip(*ranges, strict=True))
    order = np.argsort(begin, kind="stable")
    return begin[order], end[order]


def _reach(group: _Group, items: _Items, begin: Numbers, end: Numbers) -> bool:
    """Whether reads reach into ranges that are written: all of them as one range, and if that does, each by itself."""
    if not len(items.begin):
        return False
    least, most = int(group.steps.min() + items.begin.min()), int(group.steps.max() + (items.begin + items.nbytes).max())
    return _overlap_one(least, most, begin, end) and _overlap(*group.ranges(items), begin, end)


def _overlap_one(first: int, last: int, begin: Numbers, end: Numbers) -> bool:
    """Whether a range overlaps some that are apart and in order."""
    return _overlap(np.array([first]), np.array([last]), begin, end)


def _overlap(first: Numbers, last: Numbers, begin: Numbers, end: Numbers) -> bool:
    """Whether ranges overlap some that are apart and in order."""
    at = np.searchsorted(end, first, side="right")
    return bool(((at < len(begin)) & (begin[np.minimum(at, len(begin) - 1)] < last)).any())


def united(begin: Numbers, end: Numbers) -> tuple[Numbers, Numbers]:
    """The union of ranges that are in the order of their first bytes."""
    last = np.maximum.accumulate(end)
    starts = np.concatenate([[True], begin[1:] > last[:-1]])
    return begin[starts], last[np.concatenate([starts[1:], [True]])]
