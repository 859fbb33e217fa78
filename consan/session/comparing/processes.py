"""Compares the launches of the processes of a program, each of them a rank, once all have ended (SEMANTICS 12, R-RK7).

Each process has written what it did in windows (process_log.py). Two launches of different ranks race if they touch the same bytes, one of
them writes, and nothing orders them. Processes may wait for each other in ways that nobody sees. So a race is reported if both have run at
the same time by the clock of the machine, and neither writes a flag that another kernel may wait for: nothing can have ordered them. Else
the two are named, and the report is incomplete.
"""

from __future__ import annotations

import bisect
import io
import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from consan.checker.compiled.concurrent_launches import SYS_SCOPE, Conflict, RetainedFlag, RetainedFlags, racing
from consan.dataclass import dataclass
from consan.reports.decoding import launch_race as words
from consan.reports.formats.json_format import access_from_json
from consan.reports.model import Access, Finding
from consan.reports.records.numbering import unflatten
from consan.reports.source.variables import Argument
from consan.session.comparing.array_rows import both_in
from consan.session.comparing.pairs.flagged_launches import FlaggedLaunch
from consan.session.comparing.peer_flags import PeerFlags
from consan.session.comparing.process_log import SUFFIX, SharedWindow

_WINDOW_BITS: Final = 44  # bits of an offset in a window
MOST_PAIRS: Final = 1 << 16  # that no seen order is between


class EarlierOnes(NamedTuple):
    """Launches and operations of a rank: all below a number, and a bit for each from there on. As a program goes on, few have a bit."""

    below: int = 0
    bits: int = 0

    def __contains__(self, number: object) -> bool:
        assert isinstance(number, int)
        return number < self.below or bool(self.bits >> number - self.below & 1)

    def joined(self, other: EarlierOnes) -> EarlierOnes:
        """With those of another set."""
        if self.below < other.below:
            return other.joined(self)
        return self._with(self.bits | other.bits >> self.below - other.below)

    def plus(self, number: int) -> EarlierOnes:
        """With one more."""
        return self if number in self else self._with(self.bits | 1 << number - self.below)

    def _with(self, bits: int) -> EarlierOnes:
        more = (~bits & bits + 1).bit_length() - 1  # those that follow without a gap
        return EarlierOnes(self.below + more, bits >> more)

    @classmethod
    def than(cls, number: int, concurrent: Iterable[int]) -> EarlierOnes:
        """All before a number but some."""
        least = min(concurrent, default=number)
        return cls(least, ((1 << number - least) - 1) & ~sum(1 << each - least for each in concurrent))

    @property
    def end(self) -> int:
        """Behind the last one."""
        return self.below + self.bits.bit_length()


Known = dict[int, EarlierOnes]
"""By rank: its launches and operations that come before."""


@dataclass(eq=False)
class LoggedLaunch(FlaggedLaunch):
    """A launch of a rank. `before`: the earlier ones of its rank that are over when it starts."""

    number: int
    before: EarlierOnes
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
class LoggedProcess:
    """The log of one process."""

    about: dict[str, Any]
    launches: list[LoggedLaunch]
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
        reasons["there were more accesses to symmetric memory, or launches that touch it, than are compared"] = None
    _place(processes)
    knowledge, flags = Knowledge(processes), PeerFlags([made for each in processes for made in each.launches], _is_over, shows=_shows)
    findings: list[Finding] = []
    races = _Races()
    for count, (first, second) in enumerate(unordered_pairs(processes, knowledge)):
        if count >= MOST_PAIRS:
            reasons["there were more launches of different ranks than are compared"] = None
            break
        _judge(first, second, races, flags, findings, reasons)
    return findings, list(reasons)


def unordered_pairs(processes: list[LoggedProcess], knowledge: Knowledge) -> Iterator[tuple[LoggedLaunch, LoggedLaunch]]:
    """The launches of two ranks that no seen order is between."""
    for one, other in itertools.combinations(processes, 2):
        if one.rank != other.rank:
            yield from _unordered(one, other, knowledge)


def _unordered(one: LoggedProcess, other: LoggedProcess, knowledge: Knowledge) -> Iterator[tuple[LoggedLaunch, LoggedLaunch]]:
    """A launch meets few others: those that it knows stand before them, and those that know it behind."""
    numbers = [made.number for made in other.launches]
    know = [knowledge.before(made).get(one.rank, EarlierOnes()) for made in other.launches]
    from_here = list(itertools.accumulate(reversed([each.below for each in know]), min))[::-1]  # these, and all that follow, know so many
    for made in one.launches:
        known = knowledge.before(made).get(other.rank, EarlierOnes())
        for at in range(bisect.bisect_left(numbers, known.below), len(numbers)):
            if from_here[at] > made.number:
                break
            if numbers[at] not in known and made.number not in know[at]:
                yield made, other.launches[at]


def _is_over(one: FlaggedLaunch, other: FlaggedLaunch) -> bool:
    """Whether a launch is over when another one of its rank starts."""
    assert isinstance(one, LoggedLaunch)
    assert isinstance(other, LoggedLaunch)
    return one.rank == other.rank and one.number in other.before


def _shows(first: FlaggedLaunch, second: FlaggedLaunch) -> bool:
    """Whether all is known that the process of a launch did from the begin of another process' launch to the begin of its own."""
    assert isinstance(first, LoggedLaunch)
    assert isinstance(second, LoggedLaunch)
    began, quiet = first.about["began"], second.about["quiet"]
    return bool(began) and quiet is not None and quiet <= began


class _Races(dict[tuple[tuple[str, int], tuple[str, int]], tuple[list[Conflict], bool]]):
    """The conflicts that `racing` finds between the accesses of two launches."""

    def of(self, first: LoggedLaunch, second: LoggedLaunch) -> tuple[list[Conflict], bool]:
        """The conflicts, and whether there may be others. Launches with the same accesses are compared once."""
        key = first.alike, second.alike
        if key not in self:
            self[key] = racing(first.rows, second.rows, waited=False, scope=SYS_SCOPE)
        return self[key]


def _judge(
    first: LoggedLaunch, second: LoggedLaunch, races: _Races, flags: PeerFlags, findings: list[Finding], reasons: dict[str, None]
) -> None:
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


def _overlap(first: LoggedLaunch, second: LoggedLaunch) -> bool:
    """Whether each began before a host can have known the end of the other: nothing that a host has done can have ordered them."""
    begins, ends = (float(each.about["began"]) for each in (first, second)), (float(each.about["ended"]) for each in (first, second))
    return all((first.about["began"], second.about["began"])) and max(begins) < min(ends)


def _race(first: LoggedLaunch, second: LoggedLaunch, each: Conflict) -> Finding:
    one, other = both_in(each.first, each.second)
    edge = words.StreamEdge(f"rank {first.rank}", f"rank {second.rank}", "")
    sides = first.side(one, each.reach), second.side(other, each.reach)
    return words.launch_race(*sides, words.NO_RANK_EDGE, edge, ahead=0, count=each.count, ctas=each.ctas, same_value=each.same_value)


class Knowledge:
    """The launches that come before each launch, in its own rank and in others."""

    def __init__(self, processes: list[LoggedProcess]) -> None:
        self._exchanges: dict[int, dict[int, dict[str, Any]]] = {
            each.rank: {int(exchange["number"]): exchange for exchange in each.exchanges} for each in processes
        }
        self._numbers = {rank: sorted(own) for rank, own in self._exchanges.items()}
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
                    with_it = exchange["before"].plus(number)
                    changed |= _join(given.setdefault(exchange["key"], {}), {**known, rank: with_it})

    def of(self, rank: int, before: EarlierOnes) -> Known:
        """The launches of others that come before what is behind these operations of a rank."""
        found: Known = {}
        numbers, seen = self._numbers.get(rank, []), EarlierOnes()
        for at in range(bisect.bisect_left(numbers, before.end) - 1, -1, -1):
            number = numbers[at]
            if number < seen.below:
                break
            if number in before and number not in seen:  # the last one knows what those before it know
                _join(found, self._at.get((rank, number), {}))
                seen = seen.joined(self._exchanges[rank][number]["before"]).plus(number)
        return found

    def before(self, made: LoggedLaunch) -> Known:
        """The launches of others that come before a launch."""
        key = made.rank, made.number
        if key not in self._before:
            self._before[key] = self.of(made.rank, made.before)
        return self._before[key]


def _join(known: Known, more: Known) -> bool:
    """Add to what is known. Returns whether that was new."""
    changed = False
    for rank, numbers in more.items():
        before = known.get(rank, EarlierOnes())
        known[rank] = before.joined(numbers)
        changed |= known[rank] != before
    return changed


def _read(path: Path) -> LoggedProcess:
    with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
        about = json.loads(file["about"].tobytes())
        launches, exchanges, rows, flags = [], [], dict[int, Any](), dict[int | None, Any]({None: None})
        for entry in about["entries"]:
            before = EarlierOnes.than(int(entry["number"]), entry["concurrent"])
            if "key" in entry:
                exchanges.append({**entry, "before": before})
                continue
            number, first, with_flags = int(entry["number"]), int(entry["rows"]), entry["flags"]
            if first not in rows:
                rows[first] = file[f"rows-{first}"]
                rows[first]["device"] = file[f"windows-{first}"]
            if with_flags not in flags:
                flags[with_flags] = RetainedFlags(file[f"flags-{with_flags}"], file[f"sets-{with_flags}"])
                flags[with_flags].rows["scope"] = file[f"windows-of-flags-{with_flags}"]
            entry |= about["kinds"][entry["kind"]]
            launches.append(LoggedLaunch(int(about["rank"]), rows[first], flags[with_flags], number, before, entry, (path.name, first)))
    return LoggedProcess(about, launches, exchanges)


def _place(processes: Iterable[LoggedProcess]) -> None:
    """Give each window the same place in all processes, and accesses their places there."""
    places: dict[tuple[str, int], int] = {}
    for process in processes:
        windows = [SharedWindow(**each) for each in process.about["windows"]]
        numbers = np.array([places.setdefault((each.key, each.rank), len(places) + 1) for each in windows], np.uint64)
        named = dict(zip(numbers.tolist(), windows, strict=True))
        for rows in {made.alike: made.rows for made in process.launches}.values():
            rows["address"] += numbers[rows["device"].astype(np.int64)] << np.uint64(_WINDOW_BITS)
        for flags in {id(made.flags): made.flags for made in process.launches if made.flags is not None}.values():
            flags.rows["address"] += numbers[flags.rows["scope"].astype(np.int64)] << np.uint64(_WINDOW_BITS)
        for made in process.launches:
            made.windows = named
