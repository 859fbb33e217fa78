"""Runs a kernel with full and with compact logs on the virtual machine, by one schedule, and compares what each lane has recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from draws import examples
from measure import arguments
from oracle_programs import Batch
from oracle_strategies import OF_GRIDS, batches
from record_support import file_of, kernel, twin_file

import consan
from consan.backends.virtual import VirtualBackend
from consan.checker.judging.collected import LaunchedKernel
from consan.checker.judging.starting import start
from consan.checker.logs.launch import Launch
from consan.checker.logs.memory import LogMemory
from consan.instrument import effects
from consan.instrument.effects import LANES
from consan.instrument.ptx import three_extents
from consan.instrument.record import Recorded, record
from consan.instrument.record.families.global_memory import Mode
from consan.instrument.record.text.templates import END
from consan.launching.placement import Placement

MOST = 4 << 30  # bytes for logs
_READINGS = (2, 3)  # their places among the words of a strong access
CLUSTERS = 3  # whose logs are compared


class Hangs(Exception):  # noqa: N818
    """The launch did not run to its end."""


@dataclass(frozen=True)
class Work:
    """A launch of a kernel, with arguments as `consan.launch` takes them."""

    ptx: str
    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    args: Sequence[Any]
    shared: int = 0
    seed: int = 0
    global_races: bool = False

    def recorded(self, *, compact: bool) -> Recorded:
        """The module as a device has it whose threads leave."""
        return record(self.ptx, global_races=self.global_races, leaves=True, compact=compact)

    def run(self, recorded: Recorded, memory: LogMemory | None = None, most: int = MOST) -> Launch:
        """Launch it, on a new machine if none is given. `most`: bytes for logs. Raises `Hangs`."""
        memory = memory or LogMemory(VirtualBackend())
        backend = memory.backend
        handle = backend.load(recorded.ptx)
        number = recorded.entries.index(self.entry)
        launched = LaunchedKernel(0, number, self.grid, self.block, recorded.kernels[number].cluster)
        launch = start(memory, handle, recorded, launched, most, machine=VirtualBackend)
        given = [each.tobytes() if isinstance(each, np.generic) else each for each in self.args]
        values = Placement(backend).parameters(given, "argument")
        stats = backend.launch(handle, self.entry, self.grid, self.block, values, shared=self.shared, seed=self.seed)
        if not stats.completed:
            raise Hangs
        return launch


def of_twin(name: str, racy: bool = False, seed: int = 0) -> Work:
    """A kernel of tests/kernels."""
    spec, made = twin_file.read(file_of(name)), kernel(name, racy)
    return Work(made.ptx, made.entry, _three(spec.grid), _three(spec.block), spec.parameters(spec.fresh_args()), spec.smem or 0, seed)


def _three(size: int | tuple[int, ...]) -> tuple[int, int, int]:
    return three_extents((size,) if isinstance(size, int) else size)


def lanes(launch: Launch, cluster: int, recorded: Recorded) -> list[list[tuple[int, ...]]]:
    """The blocks that each lane of a cluster has recorded, without the readings of clocks: these follow from the schedule."""
    blocks, _ = recorded.blocks.tables
    found = _lanes_of(launch.histories([cluster])[0].log, launch.threads, blocks["words"].tolist())
    readings = {
        template.number: {event.words + place for event in template.events if isinstance(event, effects.Observe) for place in _READINGS}
        for template in recorded.blocks.templates
    }
    return [[_without(block, readings.get(block[0], set())) for block in lane] for lane in found]


def _without(block: tuple[int, ...], places: set[int]) -> tuple[int, ...]:
    return tuple(0 if place in places else word for place, word in enumerate(block)) if places else block


def _lanes_of(log: npt.NDArray[np.uint32], threads: int, sizes: list[int]) -> list[list[tuple[int, ...]]]:
    warps, found = -(-threads // LANES), list[list[tuple[int, ...]]]()
    for warp, lines in enumerate(log):
        count = min(LANES, threads - warp % warps * LANES)
        found += [_blocks(lines[:, lane].tolist(), sizes) for lane in range(count)]
    return found


def _blocks(words: list[int], sizes: list[int]) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    at = 0
    while 0 < words[at] < len(sizes):
        number = words[at]
        found.append(tuple(words[at : at + sizes[number]]))
        at += sizes[number]
    return [*found, (words[at],)] if words[at] != END else found


def compared(work: Work) -> str:
    """What differs between the two logs of a launch, and between the groups of its CTAs; empty if nothing does."""
    full, compact = work.recorded(compact=False), work.recorded(compact=True)
    assert full.expansion is None
    if compact.expansion is None:
        return "full"
    if full.blocks.templates != compact.blocks.templates:
        return "templates"
    whole, small = work.run(full), work.run(compact)
    groups = whole.grouped()
    if groups.by_cluster().tolist() != small.grouped().by_cluster().tolist():
        return "groups"
    for cluster in range(CLUSTERS) if full.kernels[0].mode is Mode.SYNCED else [group.members[0] for group in groups.groups][:CLUSTERS]:
        for lane, (one, other) in enumerate(zip(lanes(whole, cluster, full), lanes(small, cluster, compact), strict=True)):
            if one != other:
                return f"cluster {cluster}, lane {lane}"
    return ""


@dataclass
class Compared:
    """Random kernels, with both logs of each. Kernels that hang, or that take hooks, are left out."""

    kernels: int = 0
    compact: int = 0
    left_out: int = 0
    different: list[str] = field(default_factory=list)

    def add(self, batch: Batch, global_races: bool) -> None:
        """Compare one kernel."""
        work = Work(
            batch.ptx, consan.Kernel(batch.ptx).entry, (batch.grid, 1, 1), (batch.threads, 1, 1), arguments(), global_races=global_races
        )
        if work.recorded(compact=False).refusal:
            self.left_out += 1
            return
        try:
            outcome = compared(work)
        except Hangs:
            self.left_out += 1
            return
        self.kernels += 1
        self.compact += outcome == ""
        if outcome not in ("", "full"):
            self.different.append(f"{outcome}\n{batch.ptx}")


def random_programs(strategy: str, count: int, number: int) -> Compared:
    """So many random kernels of four programs each; the same number makes the same ones."""
    found = Compared()
    for batch in examples(batches(strategy, 4), number, count):
        found.add(batch, strategy in OF_GRIDS)
    return found


def is_steady(work: Work) -> bool:
    """Whether full logs of a launch do not depend on its schedule. Schedules count instructions, so they differ where texts do."""
    recorded = work.recorded(compact=False)
    logs = [lanes(replace(work, seed=seed).run(recorded), 0, recorded) for seed in range(12)]
    return all(log == logs[0] for log in logs)
