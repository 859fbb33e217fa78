"""Whether threads meet in a byte that one of them writes, by the ranges of bytes of all accesses.

Accesses whose addresses follow from the CTA in the same way are a group: within one CTA their bytes are compared thread by thread, and then
all CTAs have the same runs of bytes, at other places. The runs of all CTAs that are written must be apart, and no read may reach into one,
but where a thread reads what only it writes. Two groups that meet are no proof, even where one thread is in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from consan.ranges.walk import Path, SpreadAccess

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
        """Those of some accesses, each once."""
        if sum(len(access.threads) for access in accesses) > _MOST_ITEMS:
            raise _Many
        rows = [(np.broadcast_to(each.of_thread + each.of_cta[0], each.threads.shape), each) for each in accesses]
        begin = np.concatenate([begin for begin, _ in rows])
        nbytes = np.concatenate([np.full(len(each.threads), each.nbytes) for _, each in rows])
        found = np.unique(np.stack([begin, nbytes, np.concatenate([each.threads for _, each in rows])]), axis=1)
        return cls(*found)

    def runs(self) -> tuple[Numbers, Numbers]:
        """The ranges of bytes, apart and in order."""
        return _united(self.begin, self.begin + self.nbytes)

    def are_apart(self) -> bool:
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


def meet(paths: Iterable[Path]) -> str:
    """Why it is not certain that no threads meet; empty if it is."""
    try:
        return _meet(list(_groups(paths)))
    except _Many:
        return _TOO_MANY


def _groups(paths: Iterable[Path]) -> Iterator[_Group]:
    found: dict[tuple[bytes, bytes], _Group] = {}
    for path in paths:
        for access in path.accesses:
            steps = np.broadcast_to(access.of_cta - access.of_cta[0], path.ctas.shape)
            group = found.setdefault((path.ctas.tobytes(), steps.tobytes()), _Group(steps))
            group.accesses.append(access)
    yield from found.values()


def _meet(groups: list[_Group]) -> str:
    written = list[tuple[Numbers, Numbers]]()
    reads = list[tuple[_Group, _Items]]()
    for group in groups:
        writes = [access for access in group.accesses if access.writes]
        own = [access for access in group.accesses if not access.writes and access.own]
        others = [access for access in group.accesses if not access.writes and not access.own]
        if writes:
            items = _Items.of(writes)
            if not items.are_apart():
                return "threads of a CTA write the same bytes"
            written.append(group.ranges(items))
            reads += [(group, _Items.of(own).outside(items))] if own else []
        else:
            others += own
        reads += [(group, _Items.of([access])) for access in others]
    if not written:
        return ""
    begin, end = (np.concatenate(column) for column in zip(*written, strict=True))
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], end[order]
    if (begin[1:] < end[:-1]).any():
        return "CTAs write the same bytes"
    return "a thread reads what another one writes" if any(_reach(group, items, begin, end) for group, items in reads) else ""


def _reach(group: _Group, items: _Items, begin: Numbers, end: Numbers) -> bool:
    """Whether reads reach into ranges that are written: all of them as one range, and if that does, each by itself."""
    if not len(items.begin):
        return False
    least, most = int(group.steps.min() + items.begin.min()), int(group.steps.max() + (items.begin + items.nbytes).max())
    if not _overlap(np.array([least]), np.array([most]), begin, end):
        return False
    return _overlap(*group.ranges(items), begin, end)


def _overlap(first: Numbers, last: Numbers, begin: Numbers, end: Numbers) -> bool:
    """Whether ranges overlap some that are apart and in order."""
    at = np.searchsorted(end, first, side="right")
    return bool(((at < len(begin)) & (begin[np.minimum(at, len(begin) - 1)] < last)).any())


def _united(begin: Numbers, end: Numbers) -> tuple[Numbers, Numbers]:
    """The union of ranges that are in the order of their first bytes."""
    last = np.maximum.accumulate(end)
    starts = np.concatenate([[True], begin[1:] > last[:-1]])
    return begin[starts], last[np.concatenate([starts[1:], [True]])]
