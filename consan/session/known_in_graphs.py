"""Launches into graphs that are known to do what a checked one did (planning/decided.py), or that record nothing: their nodes need no log.

A program that captures a graph has usually launched its kernels before. Their checks may be under way, and nobody waits for them: such a
node needs no log, either, and the check has ended when the node's launches are counted. If it shows that it does not stand for them, they
count as not recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from consan.dataclass import dataclass
from consan.ranges import LaunchExtents
from consan.session.executing.background import Background
from consan.session.executing.in_flight_launch import InFlightLaunch, ReceiptGroup, Shape, shape_but_log
from consan.session.framework_launch import FrameworkLaunch
from consan.session.global_looks import GlobalLooks
from consan.session.modules.parameters import Parameters
from consan.session.modules.prepared import Prepared

_UNDER_WAY: Final = "its graph was captured beside the check of a launch with the same parameters, which does not stand for others"
_NOT_DECIDED: Final = f"{_UNDER_WAY}: launch it without a graph"


@dataclass
class KnownInGraphs:
    """Those of one session. The caller holds the device."""

    background: Background
    looks: GlobalLooks

    def teller(self, prepared: Prepared, launch: FrameworkLaunch, shape: Shape) -> Callable[[int], None] | None:
        """Counts launches of a node. None: it is not known what they do, or their accesses to global memory are not proven apart."""
        args = launch.args()
        if args is None:
            return None
        judge = self.looks.judge
        kernels = judge.recording.kernels
        if (count := kernels.counter(prepared, launch.entry, launch.grid, launch.block, launch.cluster)) is not None:
            return self._teller_of_silent(prepared, launch, args, count)
        if judge.may_stop(prepared, launch.entry, decided=True) or not self.background.accepts(prepared, launch.entry):
            return None
        with self.background.device.backend.outside_captures():
            known = self._account(shape, args)
        ahead = self._ahead(shape, args) if known is None else None
        looks = judge.recording.options.global_wanted
        if (known is None and ahead is None) or (looks and not self._is_proven(prepared, launch, args)):
            return None
        kept = launch.without_arguments

        def tell(times: int) -> None:
            account = known if ahead is None else ahead.account
            if account is None or not account.serves_alike():
                kernels.lacks_record(prepared, kept.entry, _NOT_DECIDED, times)
                return
            self.background.counts(account, times)
            if looks:
                self.looks.counts(prepared, kept, args, times)

        return tell

    def _teller_of_silent(
        self, prepared: Prepared, launch: FrameworkLaunch, args: Parameters, count: Callable[[int], None]
    ) -> Callable[[int], None] | None:
        """The same for a kernel that records nothing; a launch like this one was judged."""
        judge, kept = self.looks.judge, launch.without_arguments
        looks = judge.recording.options.global_wanted
        if judge.keeper is not None or (looks and not self._is_proven(prepared, launch, args)):
            return None

        def tell(times: int) -> None:
            count(times)
            if looks:
                self.looks.counts(prepared, kept, args, times)

        return tell

    def _is_proven(self, prepared: Prepared, launch: FrameworkLaunch, args: Parameters) -> bool:
        return self.looks.judge.proofs.accesses(prepared, launch.entry, args, LaunchExtents(launch.grid, launch.block)) > 0

    def _account(self, shape: Shape, args: Parameters) -> ReceiptGroup | None:
        """The account of an earlier launch with the same deciding bytes, if that is concluded."""
        self.background.look()
        decided = self.background.repeating.decided(shape)
        return None if decided is None else decided.of(args)

    def _ahead(self, shape: Shape, args: Parameters) -> InFlightLaunch | None:
        """An earlier launch with the same deciding bytes that is not concluded."""
        like, sent = shape_but_log(shape), list(self.background.sent)
        return next((each for each in sent if shape_but_log(each.shape) == like and each.decides(args)), None)
