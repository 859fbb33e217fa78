"""The log of one process of several ranks: its accesses to the memory that they share, for a comparison of all (processes.py; R-RK7).

Bytes are named by window and offset: a window is the memory of one rank in an allocation, and has another address in each process. Of each
launch the log has its accesses to windows, the earlier ones that it may run beside, when it began (its host waits for all work before it),
and until when its host cannot have known its end: until a later launch before which the program has waited for nothing, and has started no
work of unknown accesses, which could signal another process. Meetings of the processes (collectives) stand among the launches.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import asdict, field
from pathlib import Path
from time import monotonic as now
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from consan.checker.compiled.concurrent_launches import SYS_SCOPE, RetainedFlags, Rows, releases
from consan.dataclass import dataclass
from consan.reports.formats.json_format import access_to_json
from consan.session.comparing.array_rows import ByRows

if TYPE_CHECKING:
    from consan.session.comparing.followed_streams import FollowedStreams
    from consan.session.comparing.program_streams import ProgramStream
    from consan.session.comparing.streams import Numbers

SUFFIX: Final = ".ranks"
MOST_LOGGED: Final = 1 << 22  # accesses
_FEW: Final = 64  # accesses
MOST_ENTRIES: Final = 1 << 18  # launches and exchanges


@dataclass(frozen=True)
class SharedWindow:
    """The memory of one rank in an allocation. `key`: that of the allocation, in all processes; `name`: in reports."""

    key: str
    rank: int
    begin: int
    nbytes: int
    name: str
    element: int = 1  # bytes

    @property
    def end(self) -> int:
        """Behind the last byte."""
        return self.begin + self.nbytes


class Done(Protocol):
    """A launch or an operation with its accesses."""

    @property
    def rows(self) -> Rows | None:
        """Its accesses, if they are known."""

    @property
    def name(self) -> str:
        """The kernel's name."""

    @property
    def flags(self) -> RetainedFlags | None:
        """Its flags that other GPUs may use, if all are known."""

    @property
    def fences(self) -> int:
        """The scope of the widest fence of the kernel; -1: it has none."""

    def side(self, row: np.void) -> Any:
        """An access for the report."""


@dataclass
class HostTimes:
    """The times that a host knows. `began`: of the launch that is being made; 0: it is not waited for.

    `quiet`: since when the process has done nothing of unknown accesses; None: some of that may still run.
    """

    began: float = 0.0
    quiet: float | None = None


@dataclass(eq=False)
class ProcessLog:
    """The log of this process."""

    rank: int
    world: int
    windows: list[SharedWindow] = field(default_factory=list)
    full: bool = False
    times: HostTimes = field(default_factory=HostTimes)
    _entries: list[dict[str, Any]] = field(default_factory=list)
    _rows: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    _first: dict[bytes, int] = field(default_factory=dict)  # the first launch with some accesses, by their digest
    _kinds: list[dict[str, Any]] = field(default_factory=list)  # what is the same in launches with the same accesses
    _kind_of: dict[tuple[int, str], int] = field(default_factory=dict)  # their places, by the first launch and the kernel
    _alike: ByRows[tuple[int, int]] = field(
        default_factory=functools.partial(ByRows, _FEW)
    )  # the first launch with some accesses, and the number of its kind
    _alike_flags: ByRows[int] = field(default_factory=ByRows)  # the first launch with some flags
    _logged: int = 0
    _unwaited: dict[int, dict[str, Any]] = field(default_factory=dict)  # the launches whose ends the program's host cannot know
    _keys: Counter[str] = field(default_factory=Counter)

    def add_window(self, key: str, rank: int, begin: int, nbytes: int, name: str, element: int = 1) -> None:
        """Know a window."""
        if begin and nbytes and self.holding(begin) is None:
            self.windows.append(SharedWindow(key, rank, begin, nbytes, name, element))

    def holding(self, address: int) -> SharedWindow | None:
        """The window that an address is in."""
        return next((each for each in self.windows if each.begin <= address < each.end), None)

    def numbered(self, key: str) -> str:
        """A key that is another one each time: all processes count alike."""
        self._keys[key] += 1
        return f"{key} {self._keys[key]}"

    def met(self, number: int, concurrent: Iterable[int], key: str, *, sends: bool = True, receives: bool = True) -> None:
        """A barrier of processes, as an operation. `sends`, `receives`: whether what came before is known to others, and theirs here."""
        self._enter({"number": number, "concurrent": sorted(concurrent), "key": key, "sends": sends, "receives": receives})

    def _enter(self, entry: dict[str, Any]) -> None:
        self.full = self.full or len(self._entries) >= MOST_ENTRIES
        if not self.full:
            self._entries.append(entry)

    def add(self, number: int, done: Done, concurrent: Iterable[int], unwaited: Container[int] = ()) -> None:
        """A launch or an operation was made.

        `concurrent`: the earlier ones that it may run beside; `unwaited`: those whose ends the program's host cannot know.
        """
        began, self.times.began, ended = self.times.began, 0.0, now()
        self._unwaited = {each: entry for each, entry in self._unwaited.items() if done.rows is not None and each in unwaited}
        for entry in self._unwaited.values():
            entry["ended"] = max(entry["ended"], began)
        if done.rows is None:
            self.times.quiet = None
            return
        self.times.quiet = self.times.quiet or began or None
        flags, given = done.flags, done.rows
        first, kind = self._alike.of(given, (len(self.windows), done.name), lambda: self._kept(number, done, given))
        if self.full or kind < 0:
            return
        with_flags = None if flags is None else self._alike_flags.of(flags.rows, len(self.windows), lambda: self._keep_flags(number, flags))
        self._unwaited[number] = {"number": number, "concurrent": sorted(concurrent), "began": began, "ended": ended}
        self._unwaited[number] |= {"quiet": self.times.quiet, "rows": first, "kind": kind, "flags": with_flags}
        self._enter(self._unwaited[number])

    def _kept(self, number: int, done: Done, given: Rows) -> tuple[int, int]:
        """Keep accesses, unless an earlier launch had the same. Gives the first one that had them, and their kind; -1: there are none."""
        rows, window = self._in_windows(given)
        if not len(rows):
            return number, -1
        digest = hashlib.blake2b(rows.view(np.uint8).data, digest_size=16)
        digest.update(window.tobytes())
        first = self._first.setdefault(digest.digest(), number)
        if first == number:
            self._logged += len(rows)
            self.full = self.full or self._logged > MOST_LOGGED
        if first == number and not self.full:
            self._rows[f"rows-{number}"], self._rows[f"windows-{number}"] = rows, window
        if (first, done.name) not in self._kind_of:
            self._kind_of[first, done.name] = len(self._kinds)
            signals, sides = releases(rows, done.fences, SYS_SCOPE), dict(self._sides(done, rows))
            self._kinds.append({"name": done.name, "signals": signals, "sides": sides})
        return first, self._kind_of[first, done.name]

    def _keep_flags(self, number: int, flags: RetainedFlags) -> int:
        """Keep flags: those of this launch, and of later ones that are alike."""
        self._rows[f"flags-{number}"], self._rows[f"windows-of-flags-{number}"] = self._in_windows(flags.rows)
        self._rows[f"sets-{number}"] = flags.sets
        return number

    def begins(self) -> None:
        """A launch begins, and nothing else runs."""
        self.times.began = now()

    def waited(self, running: Numbers) -> None:
        """The host has waited. `running`: what may still run."""
        if not running:
            self.times.quiet = self.times.quiet or now()

    def outside(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """Which accesses are to no window."""
        return self._windows_of(rows) < 0

    def save(self, stem: Path) -> None:
        """Write it, to a file that begins with `stem`."""
        about = {"rank": self.rank, "world": self.world, "full": self.full, "entries": self._entries, "kinds": self._kinds}
        about["windows"] = [asdict(each) for each in self.windows]
        data = io.BytesIO()
        np.savez(data, about=np.frombuffer(json.dumps(about).encode(), np.uint8), **self._rows)  # type: ignore[arg-type]
        partial = stem.with_suffix(".partial-ranks")
        partial.write_bytes(data.getvalue())
        partial.replace(stem.with_suffix(SUFFIX))

    def _in_windows(self, rows: Rows) -> tuple[Rows, npt.NDArray[np.uint32]]:
        """The accesses to windows, each by its offset, and the numbers of their windows."""
        which = self._windows_of(rows)
        found, window = rows[which >= 0], which[which >= 0]  # a copy
        begins = np.array([each.begin for each in self.windows], np.uint64)
        found["address"] -= begins[window]
        return found, window.astype(np.uint32)

    def _windows_of(self, rows: Rows) -> npt.NDArray[np.int64]:
        """The number of the window of each access; -1: it is in none."""
        which = np.full(len(rows), -1, np.int64)
        for number, each in enumerate(self.windows):
            which[(rows["address"] >= each.begin) & (rows["address"] < each.end)] = number
        return which

    @staticmethod
    def _sides(done: Done, rows: Rows) -> Iterable[tuple[str, dict[str, Any]]]:
        """The accesses of each site for a report, as JSON: those of a first row of each."""
        for kind, first in zip(*np.unique(rows["site"], return_index=True), strict=True):
            side = done.side(rows[first])
            grid, block = getattr(side, "grid", None), getattr(side, "block", None)
            yield (
                str(int(kind)),
                {"entry": side.entry, "framework": side.framework, "what": side.what, "grid": grid, "block": block}
                | {"access": access_to_json(side.access(0))},
            )


@dataclass(eq=False)
class ProcessExchanges:
    """The exchanges of a process, where they stand among its launches. Each has a name (`ProcessLog.numbered`)."""

    streams: FollowedStreams

    def met(self, name: str, handle: int | None, *, waits: bool, sends: bool = True, receives: bool = True) -> None:
        """Processes meet in a stream, or their hosts.

        `waits`: the host has waited for that; `sends`: others wait for what comes before; `receives`: it waits for others.
        """
        with self.streams.lock:
            self.streams.read_noted()
            if not self._followed:
                return
            stream = None if handle is None else self._stream(handle)
            if stream is not None or handle is None:
                self.streams.concurrent.met(name, stream, sends=sends, receives=receives)
            if stream is not None and waits:
                self.streams.host_waits(stream)

    def began(self, name: str, handle: int, *, sends: bool, receives: bool) -> ProgramStream | None:
        """Processes meet in a stream of a library, behind what a stream did before, which does not wait. Returns the library's."""
        with self.streams.lock:
            self.streams.read_noted()
            before = self._stream(handle) if self._followed else None
            if before is None:
                return None
            made = self.streams.behind(before)
            self.streams.concurrent.met(name, made, sends=sends, receives=receives)
            return made

    def waited(self, exchange: ProgramStream, handle: int, *, waits: bool) -> None:
        """A stream waits for an exchange that began. `waits`: the host does."""
        with self.streams.lock:
            self.streams.read_noted()
            stream = self._stream(handle)
            if stream is not None:
                stream.wait(exchange)
            if waits:
                self.streams.host_waits(exchange)

    @property
    def _followed(self) -> bool:
        return self.streams.log is not None and self.streams.facts is not None and not self.streams.seen.why

    def _stream(self, handle: int) -> ProgramStream | None:
        """The stream with a handle; None: it is being captured."""
        place = self.streams.captures.place(self.streams.key(handle))
        return self.streams.of(handle) if place.capture is None else None
