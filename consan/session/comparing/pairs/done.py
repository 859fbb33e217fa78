"""The launches and operations of a program's streams, with their accesses to global memory."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from consan.checker.compiled.concurrent_launches import RetainedFlag, RetainedFlags, Rows
from consan.dataclass import dataclass
from consan.reports.decoding import launch_race as words
from consan.reports.records.finding_records import ModuleSites
from consan.reports.source.names import function_name
from consan.session.comparing.array_rows import ByRows, is_inside, span_of
from consan.session.comparing.comparisons import Comparisons
from consan.session.comparing.launch_memory import LaunchShape
from consan.session.comparing.pairs.awaited import AwaitedAccesses
from consan.session.comparing.streams import Numbers, Stream
from consan.session.modules.layouts import AddressName

if TYPE_CHECKING:
    from consan.ranges import AccessForm
    from consan.session.modules.prepared import Prepared


@dataclass(frozen=True)
class MadeLaunch:
    """A launch and its accesses. `rows`: None if they are not known in full. `stream`: None where no other launch runs at the same time.

    `by`: the comparisons of its device. `awaited`: its accesses come later; `freed`: memory that is other memory since, before they have.
    """

    by: Comparisons
    prepared: Prepared
    module: ModuleSites
    shape: LaunchShape
    stream: Stream | None
    fences: int  # the scope of the widest fence of the kernel; -1: it has none
    rows: Rows | None
    names: AddressName
    flags: RetainedFlags | None = None  # those that other GPUs may use
    awaited: AwaitedAccesses | None = None
    freed: tuple[tuple[int, int], ...] = ()  # addresses and bytes
    polled: bool = False  # the host has looked at a flag of it, which no release of .sys scope comes before

    @functools.cached_property
    def span(self) -> tuple[int, int]:
        """From the first byte to the last."""
        return span_of(self.rows)

    @property
    def name(self) -> str:
        """The kernel."""
        return function_name(self.shape.entry)

    @property
    def reaches(self) -> str:
        """How it reaches other GPUs."""
        return self.shape.reaches

    def known(self, placed: ByRows[Rows]) -> MadeLaunch:
        """The launch with the accesses that have come. `placed`: see `LaunchShape.rows`."""
        if self.awaited is None:
            return self
        rows = self.shape.rows(self.awaited.retained, placed)
        for address, nbytes in self.freed:
            rows = None if rows is None else rows[~is_inside(rows, address, nbytes)]
        return replace(self, rows=rows, awaited=None)

    def lacks(self, why: str, *, needed: bool) -> None:
        """It was not compared with another one. `needed`: the report is incomplete without."""
        (self.by.launch_lacks if needed else self.by.kernel_lacks)(self.prepared, self.shape.entry, why)

    def side(self, row: np.void) -> words.Side:
        """An access for the report."""
        if self.shape.footprint is not None:
            return self._touched(row, self.shape.footprint.touched[int(row["site"])].form)
        begin, nbytes = int(row["device"]), int(row["bytes"])
        return words.LaunchSide(
            self.module, self.shape.entry, self.shape.grid, self.shape.block, int(row["cluster"]), int(row["thread"]), int(row["site"]),
            begin, nbytes, bool(int(row["flags"]) & RetainedFlag.WRITES), self._name(begin, begin + nbytes),
        )  # fmt: skip

    def _touched(self, row: np.void, form: AccessForm) -> words.Side:
        place = self.prepared.instrumented.places.named(form.line, form.opcode)
        begin = int(row["device"])
        end = begin + min(form.nbytes, int(row["bytes"]))
        return words.TouchedSide(self.module.framework, self.shape.entry, place, begin, end - begin, form.writes, self._name(begin, end))

    def _name(self, begin: int, end: int) -> str:
        return self.module.variable_name(begin, end) or self.names(begin, end)


@dataclass(frozen=True)
class MadeOperation:
    """An operation of the framework on arrays. `rows` is None for operations before the first comparison."""

    operation: words.OperationSide
    stream: Stream | None
    rows: Rows | None
    owners: Sequence[Any] = ()
    fences: int = -1
    reaches: str = ""
    flags: RetainedFlags | None = None
    awaited = None
    polled = False

    @functools.cached_property
    def span(self) -> tuple[int, int]:
        """From the first byte to the last."""
        return span_of(self.rows)

    @property
    def name(self) -> str:
        """The name of the operation."""
        return self.operation.what

    def side(self, row: np.void) -> words.Side:
        """An access for the report."""
        writes = bool(int(row["flags"]) & RetainedFlag.WRITES)
        return replace(self.operation, begin=int(row["device"]), nbytes=int(row["bytes"]), writes=writes)


Done = MadeLaunch | MadeOperation


@dataclass(frozen=True)
class GraphNode:
    """A launch, or an operation, that is a node of a graph. `start`: the nodes that are over when it starts."""

    number: int
    done: Done
    start: Numbers
