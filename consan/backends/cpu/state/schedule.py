"""The schedule of a launch: which warps are delayed, when asynchronous operations land, which waits time out.

A `Schedule` answers the scheduler's questions for one launch, wave by wave:

- `late_starts`: CTAs of clusters that begin later than the others;
- `holds`: warps that stop before an event (decode/events.py), and for how many steps at least: events of any threads;
- `landings`: when a newly issued operation lands;
- `first`: which operation lands when no thread can run;
- `stay`: which lanes of a try_wait with an incomplete phase keep waiting; the others time out.

`Schedule` itself is seed 0. `Seeded` draws the answers from a seed, engine/steered.py steers at what a kernel observes. decisions.py
records answers and replays some of them.

Not decided here: where groups merge and which goes first (groups.py), the order of atomics and arrivals of one instruction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from consan.backends.cpu.engine.code import BoundBlock
    from consan.backends.cpu.engine.scheduler import Scheduler

    from .copies import PendingOperation
    from .groups import LaneGroup
    from .wave import Wave

Bools = npt.NDArray[np.bool_]
Lanes = npt.NDArray[np.intp]

AT_ONCE: Final = 0  # when an operation lands; positive: after that many steps
LATE: Final = -1  # when a wait covers it, or when no thread can run
LATE_READ: Final = -2  # the same, but what it copies is read at once
HELD: Final = -3  # later still: even a polling thread does not make it land

EARLY, EARLY_DELAYS, DELAYS = 4, 1 / 2, 1 / 32  # how often a seed delays warps before an event; short kernels need delays early
LONGEST_HOLD = 40
STEERED: Final = 1 << 32  # seeds from here on name schedules that steer (engine/steered.py)
LATEST = (2, 12, 100)  # the latest steps at which a seed lets an operation land or a CTA of a cluster start
GIVE_UP = 1 / 4  # how often a seed lets some lanes of a try_wait time out at once


class Schedule:
    """Seed 0: no delays, and asynchronous operations land as late as is legal."""

    perturbs = False  # whether the scheduler must ask before each event
    counts = False  # whether the scheduler calls `enter` before each block
    steers = False  # whether the scheduler must ask before an event that a group begins with, too

    def start_wave(self, scheduler: Scheduler) -> None:
        """A wave starts."""
        self.scheduler = scheduler
        self.wave: Wave = scheduler.wave

    def late_starts(self) -> list[tuple[Lanes, int]]:
        """Lanes that start late, and at which step; not all of them."""
        return []

    def enter(self, group: LaneGroup, block: BoundBlock) -> None:
        """A group is about to run a block."""

    def holds(self, group: LaneGroup) -> list[tuple[Bools, int]]:
        """Which lanes of a group stop here, and for how many steps."""
        return []

    def released(self, group: LaneGroup) -> None:
        """A group that was held, or started late, continues."""

    def landings(self, operation: PendingOperation) -> list[tuple[PendingOperation, int]]:
        """When the parts of an operation land."""
        return [(operation, LATE)]

    def landed(self, operation: PendingOperation) -> None:
        """An operation has landed."""

    def first(self, flying: Mapping[int, PendingOperation], awaited: frozenset[int]) -> int:
        """No thread can run: the operation that lands. Default: the first that signals an awaited mbarrier."""
        wanted = (serial for serial, operation in flying.items() if not awaited.isdisjoint(operation.signals))
        return next(wanted, next(iter(flying)))

    def stay(self, group: LaneGroup, incomplete: Bools) -> Bools:
        """Which lanes of a group at a try_wait are parked."""
        return incomplete


class Seeded(Schedule):
    """A seed's answers. The same seed gives the same answers to the same questions."""

    perturbs = True

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(abs(seed))  # a generator takes no negative seed; -1 and 1 may be equal

    def late_starts(self) -> list[tuple[Lanes, int]]:  # noqa: D102 - as in Schedule
        wave, rng = self.wave, self.rng
        if wave.cluster_size == 1:
            return []
        late = rng.random(wave.shape.ctas) < rng.random()
        ctas = late.nonzero()[0][: -1 if late.all() else None].tolist()
        return [((wave.cta_of == cta).nonzero()[0], int(rng.integers(1, rng.choice(LATEST)))) for cta in ctas]

    def holds(self, group: LaneGroup) -> list[tuple[Bools, int]]:
        """Now and then, some warps or some CTAs: all of a group if there is one."""
        rng, wave = self.rng, self.wave
        if rng.random() > (EARLY_DELAYS if self.scheduler.step < EARLY else DELAYS):
            return []
        parties = (wave.cta_of if wave.cluster_size > 1 and rng.random() < 1 / 2 else wave.warps.of_lane)[group.lanes]
        late = (rng.random(wave.warps.count) < rng.random())[parties]
        if late.all() or not late.any():
            late = parties == parties[rng.integers(len(parties))]
        return [(late, int(rng.integers(1, LONGEST_HOLD)))]

    def landings(self, operation: PendingOperation) -> list[tuple[PendingOperation, int]]:
        """At once, after a while, or late."""
        choice = int(self.rng.integers(3))
        if choice == 0:
            return [(operation, AT_ONCE)]
        if choice == 1:
            return [(operation, int(self.rng.integers(1, self.rng.choice(LATEST))))]
        return [(operation, LATE_READ if operation.splits and self.rng.integers(2) else LATE)]

    def first(self, flying: Mapping[int, PendingOperation], awaited: frozenset[int]) -> int:
        """Any."""
        return int(self.rng.choice(list(flying)))

    def stay(self, group: LaneGroup, incomplete: Bools) -> Bools:
        """Mostly all."""
        rng: Any = self.rng
        if rng.random() >= GIVE_UP:
            return incomplete
        return np.asarray(incomplete & (rng.random(len(incomplete)) < rng.random()))


def for_seed(seed: int) -> Schedule:
    """The schedule of a launch with a seed."""
    return Seeded(seed) if seed else Schedule()
