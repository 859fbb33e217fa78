"""Compares what two launches that may run at the same time do in global memory (SEMANTICS 12, R-GM14).

Two accesses race if they overlap, one writes, and they are not morally strong with each other. Accesses behind a `griddepcontrol.wait` come
after the launches that it waits for.

Not followed: an order that the two launches make by a flag in memory. Then nothing is said of the two.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass

GPU_SCOPE, SYS_SCOPE = 2, 3
_SCOPES = ("cta", "cluster", "gpu", "sys")  # by their numbers
Rows = npt.NDArray[np.void]
Numbers = npt.NDArray[np.int64]


class RetainedFlag(enum.IntFlag):
    """Properties of a kept access (layouts.KEPT)."""

    READS = 1
    WRITES = 2
    STRONG = 4
    HAS_VALUE = 8
    ASYNCHRONOUS = 16
    BEHIND = 32  # a griddepcontrol.wait
    RELEASES = 64  # it releases
    ACQUIRES = 128  # it acquires
    RUN = 1 << 14  # the bytes of an instruction, of all threads that execute it
    POSSIBLE = 1 << 15  # the launch may leave it out
    GIVEN_AGAIN = 1 << 16  # to memory of an array that was freed then, which another array has now (session/comparing/freed_memory.py)


class RankSets(enum.IntEnum):
    """Two sets of ranks in a word, a bit for each: the lowest bits of each set."""

    BEGUN = 0
    WAITED = 16  # those that have executed a griddepcontrol.wait


class Keep(enum.IntEnum):
    """Which of its accesses a launch gives for a comparison with others."""

    NOTHING = 0
    ACCESSES = 1
    PEER_FLAGS = 2  # and the flags that other GPUs may use


class PeerFlagKind(enum.IntFlag):
    """Properties of a flag of other GPUs (layouts.PEER_FLAG)."""

    OBSERVES = 1
    WRITES = 2
    UPDATES = 4


@dataclass(frozen=True)
class RetainedFlags:
    """The flags of a launch that other GPUs may use (layouts.PEER_FLAG).

    `sets`: those of releases and acquires which its accesses name by their places: of each set, how many numbers it has, and these.
    """

    rows: Rows
    sets: npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Retained:
    """All accesses of a launch to global memory. `waited`: one of its threads has executed griddepcontrol.wait.

    `begun`: of each rank, the ranks that have begun and waited before its end (RankSets); empty for a launch of one.
    `peer_flags`: its flags of other GPUs; None if they are not wanted, or not all are known.
    """

    rows: Rows
    waited: bool
    begun: tuple[int, ...] = ()
    peer_flags: RetainedFlags | None = None


@dataclass(frozen=True)
class Conflict:
    """Two sites that race. `first`, `second`: an access of each launch, `count`: how many of the second launch's do.

    `ctas`: of `second`, at least. `reach`: the bytes of all of these, if there is no gap between them; else those of `second`.
    """

    first: np.void
    second: np.void
    count: int
    ctas: int
    same_value: bool  # all of them store what the first launch has stored
    reach: tuple[int, int]


def conflicts(earlier: Rows, later: Rows, *, waited: bool, scope: int) -> Iterator[Conflict]:
    """The pairs of sites that race. `waited`: what is behind a wait of the later launch comes after the earlier one.

    `scope`: the narrowest one that includes threads of both.
    """
    for second in _by_kind(later[~_has(later, RetainedFlag.BEHIND)] if waited else later):
        for first in _by_kind(earlier):
            if _may_race(first[0], second[0], scope) and (found := _conflict(first, second)) is not None:
                yield found


def racing(earlier: Rows, later: Rows, *, waited: bool, scope: int) -> tuple[list[Conflict], bool]:
    """The pairs of sites that race for certain; and, if there are none, whether accesses do that the launches perhaps do not make."""
    certainly = certain(earlier), certain(later)
    found = list(conflicts(*certainly, waited=waited, scope=scope))
    if found or [*map(len, certainly)] == [len(earlier), len(later)]:
        return found, False
    return found, any(True for _ in conflicts(earlier, later, waited=waited, scope=scope))


def certain(rows: Rows) -> Rows:
    """Those that the launch makes for any values that it reads."""
    return rows[~_has(rows, RetainedFlag.POSSIBLE)]


def widest(scopes: Iterable[str]) -> int:
    """The number of the widest of some scopes; -1: there are none."""
    return max(map(_SCOPES.index, scopes), default=-1)


def releases(rows: Rows, fences: int, scope: int) -> bool:
    """Whether a launch may release at a scope, or a wider one. `fences`: the scope of its widest fence."""
    return _orders(rows, RetainedFlag.RELEASES, fences, scope) and bool(_strong(rows, RetainedFlag.WRITES, scope).size)


def may_signal(one: Rows, other: Rows, fences: tuple[int, int], scope: int) -> bool:
    """Whether a release of one of them may meet an acquire of the other, both of a scope that includes threads of both."""
    return _may_meet(one, other, fences, scope) or _may_meet(other, one, fences[::-1], scope)


def _may_meet(one: Rows, other: Rows, fences: tuple[int, int], scope: int) -> bool:
    """The same for a release of the first."""
    if not (releases(one, fences[0], scope) and _orders(other, RetainedFlag.ACQUIRES, fences[1], scope)):
        return False
    reads = _strong(other, RetainedFlag.READS, scope)
    return bool(reads.size and _overlaps(_strong(one, RetainedFlag.WRITES, scope), reads).any())


def is_flagged(rows: Rows, touched: Rows) -> bool:
    """Whether some bytes that the host touches are a flag for it: a launch writes them by strong operations of scope .sys."""
    flags = _strong(rows, RetainedFlag.WRITES, SYS_SCOPE)
    return bool(flags.size) and bool(_overlaps(flags, touched).any())


def without_flags(rows: Rows, touched: Rows) -> Rows:
    """The bytes that the host touches, but for its flags: those that a launch accesses by strong operations of scope .sys."""
    flags = _strong(rows, RetainedFlag(0), SYS_SCOPE)
    return touched[~_overlaps(flags, touched)] if flags.size else touched


def _orders(rows: Rows, flag: RetainedFlag, fences: int, scope: int) -> bool:
    return fences >= scope or bool((_has(rows, flag) & (rows["scope"] >= scope)).any())


def _strong(rows: Rows, flag: RetainedFlag, scope: int) -> Rows:
    return rows[_has(rows, RetainedFlag.STRONG | flag) & (rows["scope"] >= scope)]


def _has(rows: Rows, flags: RetainedFlag) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = rows["flags"] & flags == flags
    return found


def _by_kind(rows: Rows) -> Iterator[Rows]:
    """The accesses of each site, and of each of its kinds."""
    kinds = rows["site"].astype(np.int64) << 32 | rows["flags"]
    for kind in np.unique(kinds):
        yield rows[kinds == kind]


def _may_race(first: np.void, second: np.void, scope: int) -> bool:
    """Two accesses of one size, at bytes that overlap, are aligned: of the same bytes."""
    flags = int(first["flags"]), int(second["flags"])
    writes, strong = (flags[0] | flags[1]) & RetainedFlag.WRITES, flags[0] & flags[1] & RetainedFlag.STRONG
    wide = min(int(first["scope"]), int(second["scope"])) >= scope
    alike = first["element"] == second["element"] or 0 in (first["element"], second["element"])  # 0: of a bulk reduction (D24)
    return bool(writes) and not (strong and wide and alike)


def _overlaps(first: Rows, second: Rows) -> npt.NDArray[np.bool_]:
    """Which accesses of the second overlap one of the first."""
    begin, end = _united(first)
    at = np.searchsorted(begin, second["address"] + second["bytes"].astype(np.uint64), side="left").astype(np.int64) - 1
    found: npt.NDArray[np.bool_] = (at >= 0) & (end[np.maximum(at, 0)] > second["address"])
    return found


def _united(rows: Rows) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """The ranges of bytes of all, apart and in order."""
    order = np.argsort(rows["address"], kind="stable")
    begin = rows["address"][order]
    end = np.maximum.accumulate(begin + rows["bytes"][order].astype(np.uint64))
    starts = np.concatenate([[True], begin[1:] > end[:-1]])
    return begin[starts], end[np.concatenate([starts[1:], [True]])]


def _conflict(first: Rows, second: Rows) -> Conflict | None:
    found = second[_overlaps(first, second)]
    if not found.size:
        return None
    shown = found[0]
    end = first["address"] + first["bytes"].astype(np.uint64)
    met = (first["address"] < int(shown["address"]) + int(shown["bytes"])) & (end > shown["address"])
    begin, behind = _united(found)
    reach = (int(begin[0]), int(behind[0])) if len(begin) == 1 else (int(shown["address"]), int(shown["address"]) + int(shown["bytes"]))
    return Conflict(first[met][0], shown, _times(found), len(np.unique(found["cluster"])), _same_values(first, found), reach)


def _times(rows: Rows) -> int:
    plain = (rows["flags"] & ~np.uint32(RetainedFlag.BEHIND)) == RetainedFlag.READS
    return len(rows) + int(rows["value"][plain].sum(dtype=np.int64))


def _same_values(first: Rows, found: Rows) -> bool:
    """Whether both only write, and each of `found` stores what accesses of the first store there."""
    wanted = RetainedFlag.WRITES | RetainedFlag.HAS_VALUE
    if not (_has(first[:1], wanted) & _has(found[:1], wanted)).all() or (first["flags"][0] | found["flags"][0]) & RetainedFlag.READS:
        return False
    columns = ["address", "bytes", "value"]
    near = first[_overlaps(found, first)]
    stored, places = set(near[columns].tolist()), set(near["address"].tolist())
    return stored >= set(found[columns].tolist()) and len(places) == len(stored)
