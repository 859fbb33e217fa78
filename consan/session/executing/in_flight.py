"""A recorded launch beside which the program goes on, and what the launches with one receipt did."""

from __future__ import annotations

from dataclasses import dataclass

from consan.backends.base import Dim3, Handle
from consan.checker.logs.launch import Launch
from consan.checker.logs.receipts import Slip
from consan.session.executing.judging import Examined
from consan.session.executing.launch_check import LaunchCheck
from consan.session.modules.prepared import Prepared

StreamKey = tuple[int, int]  # a handle; the thread whose default stream it is
Shape = tuple[Handle, int, str, Dim3, Dim3, Dim3, int]  # the loaded module, its number, kernel, grid, block, cluster, room of its log


@dataclass(eq=False)
class ReceiptGroup:
    """The account of the launches with one receipt. `examined`: None until it is known, or if it could not be examined."""

    is_known: bool = False
    examined: Examined | None = None
    error: Exception | None = None
    first: InFlightLaunch | None = None  # the launch that was examined
    more: int = 0  # launches that did the same and are not counted yet

    def serves(self) -> bool:
        """Whether a launch with an equal receipt, but for its results, did the same."""
        checked = self.examined.checked if self.examined is not None else None
        return checked is not None and not (checked.gaps or checked.unended or checked.by_address)


@dataclass(eq=False)
class InFlightLaunch:
    """A launch that was made and is not concluded. `slip`: until its receipt has come."""

    prepared: Prepared
    shape: Shape
    started: LaunchCheck
    stream: StreamKey
    slip: Slip | None
    account: ReceiptGroup | None = None
    examined: bool = False  # by itself
    retained: bool = False  # its memory is for the next launch
    void: bool = False  # the driver has refused it
    running_since: float | None = None
    stopped_at: float | None = None
    hangs: bool = False

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
