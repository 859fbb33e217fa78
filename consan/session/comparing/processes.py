"""Compares the launches of the processes of a program, each of them a rank, once all have ended (SEMANTICS 12, R-RK7).

Each process has written what it did in windows (process_log.py). Two launches of different ranks race if they touch the same bytes, one of
them writes, and nothing orders them. Processes may wait for each other in ways that nobody sees. So a race is reported if both have run at
the same time by the clock of the machine, and neither writes a flag that another kernel may wait for: nothing can have ordered them. Else
the two are named, and the report is incomplete.
"""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from consan.checker.compiled.concurrent_launches import SYS_SCOPE, Conflict, RetainedFlag, RetainedFlags, racing
from consan.dataclass import dataclass
from consan.reports.decoding import launch_race as words
from consan.reports.formats.json_format import access_from_json
from consan.reports.model import Access, Finding
from consan.reports.records.numbering import unflatten
from consan.reports.source.variables import Argument
from consan.session.comparing.array_rows import both_in
from consan.session.comparing.peer_flags import FlaggedLaunch, PeerFlags
from consan.session.comparing.process_log import SUFFIX, SharedWindow

_WINDOW_BITS: Final = 44  # bits of an offset in a window
_MOST_PAIRS: Final = 1 << 16
Known = dict[int, int]
"""By rank: a bit for each of its launches and operations."""


@dataclass(eq=False)
class _Made(FlaggedLaunch):
    """A launch of a rank. `before`: the earlier ones of its rank that are over when it starts, a bit for each."""

    number: int
    before: int
    about: dict[str, Any]
    alike: tuple[str, int]  # the file of its process, and the first launch there with the same accesses
    windows: dict[int, SharedWindow] = field(default_factory=dict)  # by their places among addresses

    @property
    def name(self) -> str:
        """The kernel."""
        return str(self.about["name"])

    def side(self, row: np.void, reach: tuple[int, int]) -> _StoredSide:
        """An access for the report. `reach`: the bytes of all that are like it, whose name it has."""
        place = int(row["address"])
        window = self.windows[place >> _WINDOW_BITS]
        writes = bool(int(row["flags"]) & RetainedFlag.WRITES)
        begin = place & ((1 << _WINDOW_BITS) - 1)
        name = Argument(window.name, place - begin, window.nbytes, element=window.element).place(*reach)
        where = int(row["cluster"]), int(row["thread"])
        return _StoredSide(self.about["sides"][str(int(row["site"]))], self.rank, begin, int(row["bytes"]), writes, name, where)


@dataclass(frozen=True)
class _StoredSide:
    """An access of a launch of another process."""

    stored: dict[str, Any]
    rank: int
    begin: int
    nbytes: int
    writes: bool
    name: str
    where: tuple[int, int]  # CTA and thread

    @property
    def entry(self) -> str:
        """The kernel."""
        return str(self.stored["entry"])

    @property
    def framework(self) -> str:
        """The framework of the kernel."""
        return str(self.stored["framework"])

    @property
    def what(self) -> str:
        """The kernel, in words."""
        return str(self.stored["what"])

    def access(self, begin: int) -> Access:
        """The access as reports show it: its bytes are those of the window."""
        found: Access = access_from_json(self.stored["access"])
        (cta, thread), grid, block = self.where, self.stored["grid"], self.stored["block"]
        threads: dict[str, Any] = {}
        if grid and block:
            threads = {"block": unflatten(cta, tuple(grid)), "thread": unflatten(thread, tuple(block)), "warp": thread // 32}
            threads["lane"] = thread % 32
        return replace(found, rank=self.rank, bytes=(self.begin, self.begin + self.nbytes), name=self.name, **threads)


@dataclass
class _Process:
    """The log of one process."""

    about: dict[str, Any]
    launches: list[_Made]
    exchanges: list[dict[str, Any]]

    @property
    def rank(self) -> int:
        """Its rank."""
        return int(self.about["rank"])


def compared(folder: Path) -> tuple[list[Finding], list[str]]:
    """The races between the processes that have written to a folder, and why some launches were not judged."""
    try:
        processes = [_read(path) for path in sorted(folder.glob(f"*{SUFFIX}"))]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return [], [f"what a process has done in symmetric memory cannot be read: {error}"]
    if not processes:
        return [], []
    missing = set(range(max(int(each.about["world"]) for each in processes))) - {each.rank for each in processes}
    reasons = dict.fromkeys(f"what rank {rank} has done in symmetric memory is not known" for rank in sorted(missing))
    if any(each.about["full"] for each in processes):
        reasons["there were more accesses to symmetric memory than are compared"] = None
    _place(processes)
    knowledge, flags = _Knowledge(processes), PeerFlags([made for each in processes for made in each.launches], _is_over)
    findings: list[Finding] = []
    races = _Races()
    for count, (first, second) in enumerate(_pairs(processes)):
        if count >= _MOST_PAIRS:
            reasons["there were more launches of different ranks than are compared"] = None
            break
        if not knowledge.ordered(first, second):
            _judge(first, second, races, flags, findings, reasons)
    return findings, list(reasons)


def _pairs(processes: list[_Process]) -> Iterator[tuple[_Made, _Made]]:
    for one, other in itertools.combinations(processes, 2):
        if one.rank != other.rank:
            yield from itertools.product(one.launches, other.launches)


def _is_over(one: FlaggedLaunch, other: FlaggedLaunch) -> bool:
    """Whether a launch is over when another one of its rank starts."""
    assert isinstance(one, _Made)
    assert isinstance(other, _Made)
    return one.rank == other.rank and bool(other.before >> one.number & 1)


class _Races(dict[tuple[tuple[str, int], tuple[str, int]], tuple[list[Conflict], bool]]):
    """The conflicts that `racing` finds between the accesses of two launches."""

    def of(self, first: _Made, second: _Made) -> tuple[list[Conflict], bool]:
        """The conflicts, and whether there may be others. Launches with the same accesses are compared once."""
        key = first.alike, second.alike
        if key not in self:
            self[key] = racing(first.rows, second.rows, waited=False, scope=SYS_SCOPE)
        return self[key]


def _judge(first: _Made, second: _Made, races: _Races, flags: PeerFlags, findings: list[Finding], reasons: dict[str, None]) -> None:
    """Compare two launches that no seen order is between."""
    found, perhaps = races.of(first, second)
    names = (
        f"the launches of {first.name} (rank {first.rank}) and {second.name} (rank {second.rank}) touch the same bytes of symmetric memory"
    )
    if found and (first.about["signals"] or second.about["signals"]):
        found, perhaps = flags.judged(first, second)
    if perhaps:
        reasons[f"{names}, and they may synchronise through memory: they were not judged"] = None
    if found and not _overlap(first, second):
        reasons[f"{names}, and no order between them was seen: they were not judged (torch.distributed.barrier() is seen)"] = None
    else:
        findings += [_race(first, second, each) for each in found]


def _overlap(first: _Made, second: _Made) -> bool:
    """Whether each began before a host can have known the end of the other: nothing that a host has done can have ordered them."""
    begins, ends = (float(each.about["began"]) for each in (first, second)), (float(each.about["ended"]) for each in (first, second))
    return all((first.about["began"], second.about["began"])) and max(begins) < min(ends)


def _race(first: _Made, second: _Made, each: Conflict) -> Finding:
    one, other = both_in(each.first, each.second)
    edge = words.StreamEdge(f"rank {first.rank}", f"rank {second.rank}", "")
    sides = first.side(one, each.reach), second.side(other, each.reach)
    return words.launch_race(*sides, words.NO_RANK_EDGE, edge, ahead=0, count=each.count, ctas=each.ctas, same_value=each.same_value)


class _Knowledge:
    """The launches that come before each launch, in its own rank and in others."""

    def __init__(self, processes: list[_Process]) -> None:
        self._exchanges: dict[int, dict[int, dict[str, Any]]] = {
            each.rank: {int(exchange["number"]): exchange for exchange in each.exchanges} for each in processes
        }
        self._all = {rank: sum(1 << number for number in own) for rank, own in self._exchanges.items()}
        self._at: dict[tuple[int, int], Known] = {}  # what a rank knows behind an exchange
        self._before: dict[tuple[int, int], Known] = {}  # and before a launch
        given: dict[str, Known] = {}
        in_order = sorted((number, rank) for rank, own in self._exchanges.items() for number in own)
        changed = True
        while changed:  # until nobody learns anything more
            changed = False
            for number, rank in in_order:
                exchange = self._exchanges[rank][number]
                known = self._at[rank, number] = self.of(rank, exchange["before"])
                if exchange["receives"]:
                    _join(known, given.get(exchange["key"], {}))
                if exchange["sends"]:
                    changed |= _join(given.setdefault(exchange["key"], {}), {**known, rank: exchange["before"] | 1 << number})

    def of(self, rank: int, before: int) -> Known:
        """The launches of others that come before what is behind these operations of a rank, a bit for each."""
        found: Known = {}
        left = before & self._all.get(rank, 0)
        while left:  # the last one knows what those before it know
            last = left.bit_length() - 1
            _join(found, self._at.get((rank, last), {}))
            left &= ~(self._exchanges[rank][last]["before"] | 1 << last)
        return found

    def ordered(self, first: _Made, second: _Made) -> bool:
        """Whether one of two launches of different ranks comes before the other."""
        return any(self._known(one).get(other.rank, 0) >> other.number & 1 for one, other in ((second, first), (first, second)))

    def _known(self, made: _Made) -> Known:
        key = made.rank, made.number
        if key not in self._before:
            self._before[key] = self.of(made.rank, made.before)
        return self._before[key]


def _join(known: Known, more: Known) -> bool:
    """Add to what is known. Returns whether that was new."""
    before = dict(known)
    for rank, bits in more.items():
        known[rank] = known.get(rank, 0) | bits
    return known != before


def _before(entry: dict[str, Any]) -> int:
    return ((1 << int(entry["number"])) - 1) & ~sum(1 << int(each) for each in entry["concurrent"])


def _read(path: Path) -> _Process:
    with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
        about = json.loads(file["about"].tobytes())
        launches, exchanges, read = [], [], dict[int, Any]()
        for entry in about["entries"]:
            before = _before(entry)
            if "key" in entry:
                exchanges.append({**entry, "before": before})
                continue
            number, first = int(entry["number"]), int(entry["rows"])
            if first not in read:
                read[first] = file[f"rows-{first}"]
                read[first]["device"] = file[f"windows-{first}"]
            flags = None
            if f"flags-{number}" in file:
                flags = RetainedFlags(file[f"flags-{number}"], file[f"sets-{number}"])
                flags.rows["scope"] = file[f"windows-of-flags-{number}"]
            launches.append(_Made(int(about["rank"]), read[first], flags, number, before, entry, (path.name, first)))
    return _Process(about, launches, exchanges)


def _place(processes: Iterable[_Process]) -> None:
    """Give each window the same place in all processes, and accesses their places there."""
    places: dict[tuple[str, int], int] = {}
    for process in processes:
        windows = [SharedWindow(**each) for each in process.about["windows"]]
        numbers = np.array([places.setdefault((each.key, each.rank), len(places) + 1) for each in windows], np.uint64)
        named = dict(zip(numbers.tolist(), windows, strict=True))
        for rows in {made.alike: made.rows for made in process.launches}.values():
            rows["address"] += numbers[rows["device"].astype(np.int64)] << np.uint64(_WINDOW_BITS)
        for made in process.launches:
            if made.flags is not None:
                made.flags.rows["address"] += numbers[made.flags.rows["scope"].astype(np.int64)] << np.uint64(_WINDOW_BITS)
            made.windows = named
