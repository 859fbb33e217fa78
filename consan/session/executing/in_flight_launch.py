"""A launch beside which the program goes on, until it is concluded, and the account of the launches that have its receipt."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable, Hashable, Iterable
from dataclasses import field
from time import monotonic
from typing import Final

from consan._errors import InternalError
from consan.backends.base import Dim3, Handle
from consan.checker.logs.launch import Launch
from consan.checker.logs.receipts import Receipt, Slip
from consan.dataclass import dataclass
from consan.session.comparing.pairs.awaited import AwaitedAccesses
from consan.session.executing.judging import Examined
from consan.session.executing.launch_check import LaunchCheck
from consan.session.modules.parameters import Parameters
from consan.session.modules.prepared import Prepared

StreamKey = tuple[int, int]  # a handle; the thread whose default stream it is
# The loaded module, its number, kernel, grid, block, cluster, room of its log, bytes of dynamic shared memory.
Shape = tuple[Handle, int, str, Dim3, Dim3, Dim3, Hashable, int]
shape_but_log: Final = operator.itemgetter(0, 1, 2, 3, 4, 5, 7)
NOT_LIKE: Final = "they were made while a launch with the same parameters was checked, which does not stand for them"


@dataclass(eq=False)
class ReceiptGroup:
    """The account of the launches with one receipt. `examined`: None until it is known, or if it could not be examined."""

    examined: Examined | None = None
    error: Exception | None = None
    first: InFlightLaunch | None = None  # the launch that was examined
    more: int = 0  # launches that did the same and are not counted yet
    only_notes: bool = False  # its findings are no more
    over: ctypes.c_int64 = field(default_factory=ctypes.c_int64)  # 1 once it is known: C reads it

    @property
    def is_known(self) -> bool:
        """Whether it is known what the launches did, or that it cannot be."""
        return bool(self.over.value)

    @classmethod
    def failed(cls, error: Exception) -> ReceiptGroup:
        """For a launch that cannot be checked."""
        return cls(error=error, over=ctypes.c_int64(1))

    @property
    def tells_each(self) -> bool:
        """Whether each of its launches is reported at once: it has findings."""
        return self.examined is not None and bool(self.examined.checked.found) and not self.only_notes

    def serves(self) -> bool:
        """Whether a launch with an equal receipt, but for its results, did the same."""
        checked = self.examined.checked if self.examined is not None else None
        return checked is not None and checked.is_whole and not (checked.unended or checked.by_address)

    def stands_for_like(self) -> bool:
        """Whether what it says of its first launch holds for those with the same deciding bytes."""
        checked = self.examined.checked if self.examined is not None else None
        stopped = self.first is None or bool(self.first.started.ending.stopped)
        return not (checked is None or checked.unended or checked.by_address or stopped)

    def serves_alike(self) -> bool:
        """Whether launches with the same deciding bytes did the same, and have no findings but notes."""
        return self.serves() and not (self.tells_each or self.first is None or self.first.started.ending.stopped)


@dataclass(eq=False)
class InFlightLaunch:
    """A launch that was made and is not concluded. `slip`: until its receipt has come."""

    prepared: Prepared
    shape: Shape
    started: LaunchCheck
    stream: StreamKey
    slip: Slip | None
    args: Parameters | None = None  # of a launch that bytes of them decide
    account: ReceiptGroup | None = None
    examined: bool = False  # by itself
    retained: bool = False  # its memory is for the next launch
    void: bool = False  # the driver has refused it
    running_since: float | None = None
    stopped_at: float | None = None
    hangs: bool = False
    awaited: AwaitedAccesses | None = None  # for a comparison with other launches
    like: int = 0  # launches with the same deciding bytes that were made while it was checked, without a log, and are not counted

    def key(self, receipt: Receipt) -> Hashable:
        """The key that is equal for launches that did the same."""
        return self.shape[1:], self.memory.lines, self.memory.window(), self.memory.shared_part(), receipt.sums

    @property
    def by_itself(self) -> bool:
        """Whether no receipt stands for it: its global memory is recorded, and the addresses follow from its parameters."""
        recorded = self.prepared.recorded
        return recorded is not None and recorded.has_global(self.entry)

    @property
    def is_checked_now(self) -> bool:
        """Whether it has ended, by itself, and its check goes on."""
        return self.examined and self.slip is None and not (self.is_decided or self.void or self.hangs or self.started.ending.stopped)

    def compares(self, check: Callable[[], Examined]) -> Examined:
        """Check it, and compare its accesses with those of other launches, if these wait for them. Raises `InternalError`."""
        if self._has_left_nothing:
            raise InternalError("it has left no record")
        if self.awaited is None:
            return check()
        self.awaited.began = monotonic()
        examined = check()
        self.awaited.come(examined.checked.retained)
        self.awaited.compare()
        self.awaited.ended = monotonic()
        return examined

    def decides(self, args: Parameters | None) -> bool:
        """Whether it was made with the bytes that decide what a launch with these parameters does."""
        wanted, given = self.memory.decided_by, self.args
        if self.void or wanted is None or (wanted and None in (args, given)):
            return False
        return all(each.within(args or ()) == each.within(given or ()) for each in wanted)

    @property
    def _has_left_nothing(self) -> bool:
        """Whether its results are zero, though it was made with parameters, as far as they are known, that it would have left."""
        args = self.args
        if args is None or self.hangs or not any(any(each.within(args)) for each in self.memory.decided_by or ()):
            return False
        return self.memory.window() == (0, 0) and not any(self.memory.constants())

    @property
    def entry(self) -> str:
        """The kernel."""
        return self.shape[2]

    @property
    def memory(self) -> Launch:
        """Its memory."""
        assert self.started.memory is not None
        return self.started.memory

    @property
    def is_out(self) -> bool:
        """Whether its receipt has not come, and may come."""
        return self.slip is not None and not self.slip.is_there

    @property
    def is_decided(self) -> bool:
        """Whether it can be concluded."""
        return (self.void and self.slip is None) or (self.account is not None and self.account.is_known)


CheckInTurn = tuple[bool, int, InFlightLaunch, ReceiptGroup]  # those that other launches need come first, in their order


def next_ones(launches: Iterable[InFlightLaunch]) -> list[InFlightLaunch]:
    """The launches that may be concluded next: the first of those that may stand for others, then all that are looked at by themselves."""
    found = list(launches)
    return [*[each for each in found if not each.by_itself][:1], *(each for each in found if each.by_itself)]


def is_looked_at(launches: Iterable[InFlightLaunch], number: int, entry: str, extents: tuple[Dim3, Dim3, Dim3]) -> bool:
    """Whether the global memory of a launch of a shape is recorded, and it is not checked yet. `number`: of its form."""
    like = number, entry, *extents
    return any(each.by_itself and each.shape[1:6] == like and not each.is_decided for each in launches)
