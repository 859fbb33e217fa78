"""A recorded launch of a session: its memory, how it ended, and whether its record can be judged."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Final

import numpy as np

from consan.checker.compiled.concurrent_launches import Keep
from consan.checker.compiled.patience import Patience
from consan.checker.judging.checked import OUT_OF_ROOM, Checked, Histories
from consan.checker.judging.collected import LaunchedKernel
from consan.checker.judging.grid import LOGS_FULL
from consan.checker.judging.interrupted import begun, unchecked
from consan.checker.judging.recorder import LONGEST_INTERRUPTED, check
from consan.checker.logs.earlier import Earlier
from consan.checker.logs.launch import Launch
from consan.checker.logs.log_lines import LaunchSlice
from consan.checker.logs.recorded_launch import RecordedLaunch
from consan.checker.logs.shares import PairsOfLaunches, Slices
from consan.checker.logs.stops import Stop, stop_at
from consan.dataclass import dataclass
from consan.instrument.abi import records
from consan.instrument.record import Recorded
from consan.session.modules.positions import Waiters, positions
from consan.session.modules.prepared import LogShape
from consan.session.planning.plan import NOTHING_KNOWN, KnownBefore

if TYPE_CHECKING:
    from consan.backends.cpu import LaunchStats
    from consan.session.modules.prepared import Prepared

LONGEST_PAIRS: Final = 10.0  # seconds, of a launch that others may follow
_LEAST: Final = 1.0  # seconds for the replays of a launch that has taken its time


@dataclass(frozen=True)
class ReplayChoice:
    """The part of a launch that is replayed. `exhaustive`: CTAs that did the same, too. `sample`: so many CTAs at most (0: all).

    `together`: so many CTAs are replayed together where nothing orders them (0: all). `keep`: accesses to global memory are wanted.
    `pairs`: of sets of CTAs that earlier launches have compared. `slices`: where not all CTAs have logs: those of its shape, and its own.
    `divides`: if the logs are full, later launches of its shape may be looked at in so many slices.
    """

    exhaustive: bool = False
    sample: int = 0
    together: int = 0
    keep: Keep = Keep.NOTHING
    pairs: PairsOfLaunches = field(default_factory=PairsOfLaunches)
    slices: tuple[Slices, LaunchSlice] | None = None
    divides: int = 0


@dataclass
class LaunchEnding:
    """How a launch ended. `fault`: what ended it. `early`: the backend reports how. `stopped`: why the host has stopped it.

    `alone`: nothing ran at the same time: no host code or other launch wrote what it read.
    """

    fault: Stop | None = None
    early: bool = False
    stopped: str = ""
    alone: bool = False

    @property
    def reported(self) -> bool:
        """Whether the report says how it ended, apart from what was checked."""
        return self.early or bool(self.stopped)


@dataclass
class LaunchCheck:
    """A recorded launch. `memory`: on a device; None out of a file."""

    launch: RecordedLaunch
    launched: LaunchedKernel
    recorded: Recorded
    histories: Histories
    choice: ReplayChoice = field(default_factory=ReplayChoice)
    ending: LaunchEnding = field(default_factory=LaunchEnding)
    patience: Patience = field(default_factory=lambda: Patience(math.inf))  # of its replays
    timeout: float = math.inf  # seconds from its beginning to the end of its replays
    began: float = field(default_factory=time.monotonic)
    limit: int = 0  # only the first CTAs were checked (0: all)
    memory: Launch | None = None
    restore: Callable[[], None] | None = None  # brings its buffers back to what they were before; None: it cannot be repeated
    repeats: bool = False  # it is repeated
    earlier: Earlier | None = None  # what earlier processes have replayed of the module
    proven: KnownBefore = NOTHING_KNOWN  # all of its accesses to global memory

    @property
    def shape(self) -> LogShape:
        """The parts that launches with logs of one length share."""
        launched = self.launched
        return launched.entry, launched.grid, launched.block, launched.cluster

    @property
    def silent(self) -> bool:
        """Whether the kernel records nothing: what it did is known before it runs."""
        return self.memory is not None and self.memory.silent

    @property
    def can_leave(self) -> bool:
        """Whether the host can make its threads leave."""
        return self.memory is not None and self.recorded.leaves

    def stop(self) -> None:
        """Make its threads leave."""
        assert self.memory is not None
        self.memory.stop()

    def ends_by(self, why: str, *, hangs: bool) -> None:
        """The host has stopped it. `hangs`: it did not react."""
        assert self.memory is not None
        self.ending.stopped, self.memory.hangs = why, hangs
        if not hangs:
            self.memory.stop(leave=False)

    def ended(self, result: LaunchStats | None, *, alone: bool) -> None:
        """Take the backend's result, if it has one."""
        self.ending.alone = alone
        self.ending.early = result is not None and not result.completed
        if result is not None and result.faults:
            fault = result.faults[0]
            self.ending.fault = stop_at(self.recorded, fault.ptx_line, fault.ctaid, self.launched.grid, self.launched.cluster)

    def check(self, *, limit: int = 0) -> Checked:
        """Replay the launch. `limit`: only the first CTAs (0: all)."""
        self.limit = limit
        left = max(_LEAST, self.began + self.timeout - time.monotonic())
        before = self.patience
        left = min(left, LONGEST_INTERRUPTED) if before.interrupted else left
        self.patience = Patience(min(before.seconds, left), before.hurried, interrupted=before.interrupted)
        try:
            return self._checked(limit)
        except KeyboardInterrupt:  # its log was not yet read
            self.patience.interrupted = True
            return self._begun()

    def _begun(self) -> Checked:
        """The findings of the first lines of its logs, once the user has interrupted the check."""
        with contextlib.suppress(KeyboardInterrupt):
            if self.memory is not None:
                return begun(self.memory, self.recorded, self.launched)
        return unchecked(self.launched)

    def _checked(self, limit: int) -> Checked:
        return check(
            self.launch,
            self.recorded,
            self.launched,
            self.histories,
            limit=limit,
            exhaustive=self.choice.exhaustive,
            sample=self.choice.sample,
            stop=self.ending.fault,
            patience=self.patience,
            earlier=self.earlier,
            keep=self.choice.keep,
            together=self.choice.together,
            pairs=self.choice.pairs,
            pairs_seconds=math.inf if self.choice.slices or self.restore is not None or not self.choice.together else LONGEST_PAIRS,
            slices=self.choice.slices,
        )

    def free(self) -> None:
        """Free its memory."""
        self.launch.free()

    def needs_room(self, checked: Checked) -> bool:
        """Whether nothing but longer logs is missing, on a device where logs are short at first."""
        return self.recorded.leaves and self.is_full(checked)

    @property
    def may_be_longer(self) -> bool:
        """Whether later launches of its shape may have longer logs, each of its CTAs."""
        return self.recorded.leaves and self.memory is not None and not self.memory.room.roomy

    def is_full(self, checked: Checked) -> bool:
        """Whether nothing but longer logs is missing."""
        full = OUT_OF_ROOM in checked.gaps or LOGS_FULL in checked.global_races
        return full and checked.gaps.keys() <= {OUT_OF_ROOM} and not self.ending.stopped

    def positions(self, checked: Checked, prepared: Prepared, entry: str) -> Waiters:
        """The places of its threads when the host stopped it."""
        written = np.zeros(len(checked.positions), records.dtype(records.STAND))
        for record, position in zip(written, checked.positions, strict=True):
            record["valid"], record["module"], record["entry"] = 1, prepared.number, self.launched.entry
            record["ctaid"], record["warp"] = self.launched.ctaid(position.cta), position.warp
            record["lanes"], record["place"] = position.lanes, position.place
        modules: Mapping[int, Prepared] = {prepared.number: prepared}
        return positions(written, modules, entry).get(entry, [])
