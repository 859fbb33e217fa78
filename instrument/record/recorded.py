"""The result of the recording pass."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass
from consan.instrument.effects import (
    ALL_THREADS,
    CtaBarrier,
    Effect,
    Fill,
    GlobalRead,
    GlobalWrite,
    JoinPassed,
    PointReached,
    Read,
    WarpSync,
    WordValue,
    Write,
)
from consan.instrument.record.analyses.clusters import Shape
from consan.instrument.record.families.global_memory import Mode
from consan.instrument.record.text.templates import Template, tables
from consan.instrument.sites import FunctionStats, Site, StaticFinding

_OF_WARPS = (GlobalRead, GlobalWrite, PointReached, JoinPassed, WarpSync)  # or nothing to a replay of one CTA


def _is_weak(event: Effect) -> bool:
    return isinstance(event, Fill) or (isinstance(event, (Read, Write)) and not event.strong)


def _is_for_all(event: Effect) -> bool:
    return isinstance(event, CtaBarrier) and (event.id, event.threads, event.waits, event.warpgroup) == (
        WordValue(),
        ALL_THREADS,
        True,
        False,
    )


@dataclass(frozen=True)
class DecidingBytes:
    """Bytes of a parameter on which equal logs depend. `place`: among the constants of the launch; `parameter`: its number."""

    place: int
    parameter: int
    offset: int
    nbytes: int

    def within(self, parameters: Sequence[bytes]) -> bytes:
        """These bytes of a launch."""
        return parameters[self.parameter][self.offset : self.offset + self.nbytes]


@dataclass(frozen=True)
class Compact:
    """The compact log of a kernel."""

    stores: bool  # words are in it
    hashes: bool
    constants: dict[int, tuple[int, bool]]  # that the launch stores, by their place: how many bytes, and whether equal logs have equal ones
    of_grid: bool  # equal logs are of equal grids
    most: int = 0  # words that a thread stores at most; 0: none, or the text does not bound them
    decides: tuple[DecidingBytes, ...] = ()  # of parameters: launches of a shape with equal ones have equal logs, if nothing is hashed
    ends: bool = True  # these bytes decide each loop, too: a launch ends if one with equal ones has
    in_nodes: dict[int, int] = field(default_factory=dict)  # words of each node of the kernel's graph, where the text does not bound them

    @property
    def counts(self) -> bool:
        """Whether each thread stores how much it has used."""
        return self.stores and not self.most


NOT_RECORDED = Compact(stores=False, hashes=False, constants={}, of_grid=False)


@dataclass(frozen=True)
class RecordedKernel:
    """How one kernel of a module is recorded."""

    name: str
    mode: Mode  # how its global memory is recorded
    cluster: Shape  # that it requires; (1, 1, 1) if the launch decides
    silent: bool  # it records nothing, and nobody needs to stop it
    polls: bool  # it has loops in which a thread may wait for another one's store
    loops: bool  # a thread may go round a loop
    unordered: bool  # nothing orders its threads through memory (recordable.py)
    may_lack_order: bool  # strong accesses that are no race may come in the wrong order (R-MO1, R-MO2)
    compact: Compact | None = None  # where logs have only what the host cannot compute

    @property
    def has_global(self) -> bool:
        """Whether its global memory is recorded."""
        return self.mode is not Mode.OFF

    @property
    def waits_together(self) -> bool:
        """Whether its CTAs can be checked together only."""
        return self.mode is Mode.SYNCED and not self.unordered


@dataclass(frozen=True)
class Blocks:
    """The blocks that the logs of a module consist of."""

    templates: tuple[Template, ...]
    words: int  # the most that a thread stores between two cuts
    loops: bool  # threads may store more than that
    calls: bool  # threads keep their place in the log in memory, across calls of device functions
    restricted: bool = False  # fences with .sync_restrict are not taken for whole ones (restricted.py)

    @functools.cached_property
    def tables(self) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
        """The blocks and their events, for the checker."""
        return tables(list(self.templates))

    @functools.cached_property
    def in_any_order(self) -> bool:
        """Whether a replay of a CTA that finds nothing says that none does, in whichever order its warps take turns.

        All accesses are weak, and warps meet at barriers for all threads alone. So which of two accesses of two warps happens before the
        other follows from the logs, and each replay compares them if neither does. Lanes of a warp take turns in one order in all replays.
        """
        return all(
            isinstance(event, _OF_WARPS) or _is_weak(event) or _is_for_all(event) for each in self.templates for event in each.events
        )

    @functools.cached_property
    def global_sites(self) -> frozenset[int]:
        """The sites of the accesses to global memory, but for those of asynchronous copies."""
        events = self.tables[1]
        return frozenset(events["site"][np.isin(events["kind"], (GlobalRead.number, GlobalWrite.number))].tolist())


@dataclass(frozen=True, eq=False)
class Expansion:
    """The text for the host that computes full logs from compact ones. It is written once it is needed."""

    write: Callable[[], Recorded]
    loaded: list[Any] = field(default_factory=list, repr=False)  # it on a virtual machine
    programs: dict[str, Any] = field(default_factory=dict, repr=False)  # of its kernels, for the compiled machine; None: it has none
    ahead: list[Any] = field(default_factory=list, repr=False)  # tasks that write and load it (checker/ahead.py)

    @functools.cached_property
    def text(self) -> Recorded:
        """Raises `Unsupported`."""
        return self.write()


@dataclass(frozen=True)
class Recorded:
    """A recorded module: its text, its sites, and what the words of its log mean."""

    ptx: str
    target: str
    sites: tuple[Site, ...]
    functions: tuple[FunctionStats, ...]
    kernels: tuple[RecordedKernel, ...]
    blocks: Blocks
    lines: tuple[int, ...]
    external: tuple[str, ...]
    hazards: tuple[StaticFinding, ...] = ()
    debug: bool = False  # a debug build: its registers were not checked
    isa: bool = False  # checked by the strict reading of the ISA
    leaves: bool = False  # threads leave when the host stops the launch (leaving.py)
    expansion: Expansion | None = None  # if logs are compact
    prunes: bool = False  # the engine also takes the module without global memory: for launches whose accesses to it are proven apart
    refused: dict[str, str] = field(default_factory=dict)  # why kernels are not: their text is unchanged

    @functools.cached_property
    def entries(self) -> tuple[str, ...]:
        """The names of the kernels."""
        return tuple(kernel.name for kernel in self.kernels)

    def kernel(self, entry: str) -> RecordedKernel:
        """The kernel of this name."""
        return self.kernels[self.entries.index(entry)]

    @property
    def compact(self) -> bool:
        """Whether logs have only what the host cannot compute."""
        return any(kernel.compact is not None for kernel in self.kernels)

    @property
    def global_races(self) -> bool:
        """Whether the global memory of a kernel is recorded."""
        return any(kernel.has_global for kernel in self.kernels)

    def has_global(self, entry: str) -> bool:
        """Whether the global memory of this kernel is recorded."""
        return self.kernel(entry).has_global

    @property
    def refusal(self) -> str:
        """Why no kernel of the module is recorded; empty if one is."""
        return next(iter(self.refused.values()), "") if len(self.refused) == len(self.kernels) else ""

    @property
    def takes_clusters(self) -> bool:
        """Whether a kernel may cancel the launch of clusters that have not started."""
        return any("launch-control" in function.families for function in self.functions)
