"""The result of the recording pass."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.instrument.record.analyses.clusters import Shape
from consan.instrument.record.families.global_memory import Mode
from consan.instrument.record.text.templates import Template, tables
from consan.instrument.sites import FunctionStats, Site, StaticFinding


@dataclass(frozen=True)
class Compact:
    """The compact log of a kernel."""

    stores: bool  # words are in it
    hashes: bool
    constants: dict[int, tuple[int, bool]]  # that the launch stores, by their place: how many bytes, and whether equal logs have equal ones
    of_grid: bool  # equal logs are of equal grids
    most: int = 0  # words that a thread stores at most; 0: none, or the text does not bound them

    @property
    def counts(self) -> bool:
        """Whether each thread stores how much it has used."""
        return self.stores and not self.most


NOT_RECORDED = Compact(stores=False, hashes=False, constants={}, of_grid=False)


@dataclass(frozen=True)
class Recorded:
    """A recorded module: its text, its sites, and what the words of its log mean."""

    ptx: str
    target: str
    sites: tuple[Site, ...]
    functions: tuple[FunctionStats, ...]
    entries: tuple[str, ...]
    templates: tuple[Template, ...]
    words: int  # the most that a thread stores between two cuts
    loops: bool  # threads may store more than that
    calls: bool  # threads keep their place in the log in memory, across calls of device functions
    clusters: tuple[Shape, ...]  # that each kernel requires; (1, 1, 1) if the launch decides
    lines: tuple[int, ...]
    external: tuple[str, ...]
    hazards: tuple[StaticFinding, ...] = ()
    debug: bool = False  # a debug build: its registers were not checked
    modes: tuple[Mode, ...] = ()  # how the global memory of each kernel is recorded
    isa: bool = False  # checked by the strict reading of the ISA
    leaves: bool = False  # threads leave when the host stops the launch (leaving.py)
    silent: frozenset[str] = frozenset()  # kernels that record nothing, and that nobody needs to stop
    polls: frozenset[str] = frozenset()  # kernels with loops in which a thread may wait for another one's store
    unordered: frozenset[str] = frozenset()  # kernels whose threads nothing orders through memory (takes.py)
    compact: tuple[Compact, ...] = ()  # of each kernel, where logs have only what the host cannot compute
    expand: Callable[[], Recorded] | None = None  # then: the text that computes full logs of them
    loaded: list[Any] = field(default_factory=list, compare=False, repr=False)  # that text on a virtual machine, once it was needed
    ahead: list[Any] = field(default_factory=list, compare=False, repr=False)  # tasks that write and load these texts (checker/ahead.py)
    prunes: bool = False  # the engine also takes the module without global memory: for launches whose accesses to it are proven apart
    refused: dict[str, str] = field(default_factory=dict)  # why kernels are not: their text is unchanged

    @property
    def global_races(self) -> bool:
        """Whether the global memory of a kernel is recorded."""
        return any(map(self.has_global, self.entries))

    def has_global(self, entry: str) -> bool:
        """Whether the global memory of this kernel is recorded."""
        return self.modes[self.entries.index(entry)] is not Mode.OFF

    @property
    def refusal(self) -> str:
        """Why no kernel of the module is recorded; empty if one is."""
        return next(iter(self.refused.values()), "") if len(self.refused) == len(self.entries) else ""

    def waits_together(self, kernel: int) -> bool:
        """Whether the CTAs of a kernel can be checked together only."""
        return self.modes[kernel] is Mode.SYNCED and self.entries[kernel] not in self.unordered

    @functools.cached_property
    def tables(self) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
        """The blocks and their events, for the checker."""
        return tables(list(self.templates))

    @property
    def takes_clusters(self) -> bool:
        """Whether a kernel may cancel the launch of clusters that have not started."""
        return any("launch-control" in function.families for function in self.functions)
