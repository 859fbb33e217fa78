"""Compares the launches of a block of `consan.check()` that may run beside each other (SEMANTICS 12, R-GM14).

A launch is compared when it is made, with each earlier one that is not over when it starts. Their accesses are those that the recording
engine has kept. Bytes of an array are the same in both launches, wherever its copy was on the device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from consan.checker.beside import KEPT, KeptFlag, Rows, may_observe, meetings, orders
from consan.reports import beside as words
from consan.reports.found import ModuleSites
from consan.reports.model import Dim3, Finding
from consan.reports.names import function_name
from consan.session.streams import LaunchOrder, Stream, StreamPlace

if TYPE_CHECKING:
    from consan.session.prepared import Prepared
    from consan.session.session import Session

_HOST = 1 << 63  # added to the places of arrays of the host
_ROWS = np.dtype([*KEPT.descr, ("device", "<u8")])
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Copied:
    """An array of the host, and where its copy was on the device."""

    array: npt.NDArray[Any]
    address: int

    def inside(self, rows: Rows) -> Mask:
        """Which accesses begin in the copy."""
        found: Mask = (rows["device"] >= self.address) & (rows["device"] < self.address + self.array.nbytes)
        return found

    def move(self, rows: Rows) -> None:
        """Let the addresses of accesses be those in the array."""
        inside = self.inside(rows)
        element, byte = np.divmod((rows["device"][inside] - np.uint64(self.address)).astype(np.int64), self.array.itemsize)
        index = np.unravel_index(element, self.array.shape)
        offsets = sum((each * step for each, step in zip(index, self.array.strides, strict=True)), byte)
        rows["address"][inside] = (offsets + int(self.array.__array_interface__["data"][0])).astype(np.uint64) + np.uint64(_HOST)


@dataclass(frozen=True)
class Memory:
    """The memory that the parameters of a launch refer to. `shared`: also memory that others own, by its address."""

    arrays: Sequence[Copied]
    shared: bool

    def rows(self, kept: Rows) -> Rows:
        """Accesses by their places. Those of memory that no other launch has are left out."""
        rows = np.zeros(len(kept), _ROWS)
        for name in kept.dtype.names or ():
            rows[name] = kept[name]
        rows["device"] = rows["address"]
        ours = np.zeros(len(rows), np.bool_)
        for each in self.arrays:
            each.move(rows)
            ours |= each.inside(rows)
        return rows if self.shared else rows[ours]


@dataclass(frozen=True)
class LaunchShape:
    """A launch without its accesses. `memory` keeps the arrays alive, whose places are compared."""

    entry: str
    grid: Dim3
    block: Dim3
    memory: Memory


@dataclass(frozen=True)
class _Launched:
    """A launch and its accesses. `rows`: None if they are not known in full. `stream`: None where no other launch runs beside it."""

    module: ModuleSites
    shape: LaunchShape
    stream: Stream | None
    fences: bool  # the kernel has a fence
    rows: Rows | None

    @property
    def name(self) -> str:
        """The kernel."""
        return function_name(self.shape.entry)

    def side(self, row: np.void) -> words.LaunchSide:
        """An access for the report."""
        return words.LaunchSide(
            self.module, self.shape.entry, self.shape.grid, self.shape.block, int(row["unit"]), int(row["thread"]), int(row["site"]),
            int(row["device"]), int(row["bytes"]), bool(int(row["flags"]) & KeptFlag.WRITES),
        )  # fmt: skip


@dataclass
class Beside:
    """The launches of a block."""

    timeline: LaunchOrder = field(default_factory=LaunchOrder)
    _launched: dict[int, _Launched] = field(default_factory=dict)  # those that a later one may run beside

    def place(self, stream: Stream | None, *, programmatic: bool) -> StreamPlace:
        """Where the next launch stands. One without a stream comes after all others, and before all that follow.

        Raises `UsageError` if the stream is one of another block.
        """
        everything = self.timeline.everything
        return StreamPlace(everything, everything) if stream is None else stream.place(self.timeline, programmatic=programmatic)

    def launched(
        self, session: Session, prepared: Prepared, shape: LaunchShape, stream: Stream | None, *, programmatic: bool = False
    ) -> None:
        """Compare the launch that a session has made with those beside it, and keep it."""
        kept, place = session.recording.kept, self.place(stream, programmatic=programmatic)
        fences = any("fence" in function.families for function in prepared.instrumented.reachable(shape.entry))
        rows = None if kept is None else shape.memory.rows(kept.rows)
        launch = _Launched(session.sites_of(prepared), shape, stream, fences, rows)
        for each in sorted(self.timeline.everything - place.start):
            earlier, waited = self._launched[each], each in place.waited
            found = list(_compared(earlier, launch, waited=waited))
            if reason := _doubt(earlier, launch, any_found=bool(found)):
                session.watch.reasons[reason] = None
            else:
                session.recording.findings.add(found)
        self._keep(launch, place, waits=kept is not None and kept.waited)

    def _keep(self, launch: _Launched, place: StreamPlace, *, waits: bool) -> None:
        number = self.timeline.note(place, waits=waits)
        self._launched[number] = launch
        if launch.stream is None:
            self.timeline.host_waits(self.timeline.everything)
        else:
            launch.stream.launched(number, place)
        self._launched = {each: self._launched[each] for each in self.timeline.running}


def _doubt(earlier: _Launched, later: _Launched, *, any_found: bool) -> str:
    """Why two launches are not judged; empty if they are."""
    names = f"{earlier.name} and {later.name}"
    if earlier.rows is None or later.rows is None:
        return f"the launches of {names} were not compared: the accesses of one are not known in full"
    if any_found and (_may_signal(earlier, later) or _may_signal(later, earlier)):
        return f"the launches of {names} touch the same bytes, and they may synchronise through memory: they were not judged"
    return ""


def _may_signal(one: _Launched, other: _Launched) -> bool:
    """Whether a release of one may meet an acquire of the other."""
    assert one.rows is not None
    assert other.rows is not None
    gives = one.fences or KeptFlag.GIVES in orders(one.rows)
    takes = other.fences or KeptFlag.TAKES in orders(other.rows)
    return gives and takes and may_observe(one.rows, other.rows)


def _compared(earlier: _Launched, later: _Launched, *, waited: bool) -> Iterator[Finding]:
    if earlier.rows is None or later.rows is None:
        return
    situation = words.NO_GRID_WAIT if waited else words.NO_CHAINED_WAIT if earlier.stream is later.stream else words.NO_STREAM_EDGE
    for each in meetings(earlier.rows, later.rows, waited=waited):
        yield words.beside(
            earlier.side(each.first), later.side(each.second), situation, ahead=int(each.second["address"]) - int(each.first["address"]),
            count=each.count, ctas=each.ctas, same_value=each.same_value,
        )  # fmt: skip
