"""Launches into graphs that are known to do what a checked one did (planning/decided.py): their nodes need no log.

A program that captures a graph has usually launched its kernels before. Their checks may be under way: a capture waits a short time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from consan.ranges import LaunchExtents
from consan.session.executing.background import Background
from consan.session.executing.in_flight import ReceiptGroup, Shape
from consan.session.global_looks import GlobalLooks
from consan.session.modules.parameters import Parameters
from consan.session.modules.prepared import Prepared

if TYPE_CHECKING:
    from consan.session.frameworks import FrameworkLaunch

LONGEST_WAIT: Final = 4.0  # seconds, of all captures
_NAP: Final = 1e-3  # seconds
_OF_LAUNCH: Final = slice(6)  # the parts of a shape that say nothing of logs


@dataclass
class KnownInGraphs:
    """Those of one session. The caller holds the device."""

    background: Background
    looks: GlobalLooks
    _waited: float = 0.0  # seconds

    def teller(self, prepared: Prepared, launch: FrameworkLaunch, shape: Shape) -> Callable[[int], None] | None:
        """Counts launches of a node. None: it is not known what they do, or their accesses to global memory are not proven apart."""
        args = launch.args()
        if args is None or not self.background.accepts(prepared, launch.entry):
            return None
        with self.background.device.backend.outside_captures():
            account = self._account(shape, args)
        looks = self.looks.judge.recording.options.global_wanted
        if account is None or (looks and not self._is_proven(prepared, launch, args)):
            return None

        def tell(times: int) -> None:
            self.background.counts(account, times)
            if looks:
                self.looks.counts(prepared, launch, args, times)

        return tell

    def _is_proven(self, prepared: Prepared, launch: FrameworkLaunch, args: Parameters) -> bool:
        return self.looks.judge.proofs.accesses(prepared, launch.entry, args, LaunchExtents(launch.grid, launch.block)) > 0

    def _account(self, shape: Shape, args: Parameters) -> ReceiptGroup | None:
        """The account of an earlier launch with the same deciding bytes, once that launch is concluded."""
        background, began = self.background, time.monotonic()
        background.look()
        while self._waited + time.monotonic() - began < LONGEST_WAIT and any(
            sent.shape[_OF_LAUNCH] == shape[_OF_LAUNCH] for sent in background.sent
        ):
            time.sleep(_NAP)
            background.look()
        self._waited += time.monotonic() - began
        decided = background.repeating.decided(shape)
        return None if decided is None else decided.of(args)
