"""The clusters of a launch that may be replayed: those of a sample, and those that have logs (logs/shares.py)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from typing import Final

from consan.checker.judging.checked import Checked
from consan.checker.judging.grid import GridChecked
from consan.checker.judging.tally import Tally
from consan.checker.logs.grouping import Group
from consan.checker.logs.log_lines import LaunchSlice
from consan.checker.logs.shares import Slices, spread
from consan.dataclass import dataclass

_NOT_IN_SAMPLE: Final = "did what no CTA of the sample did: not checked (--sample {})"


@dataclass(frozen=True)
class RetainedOfSlices:
    """The results of the slices of a launch that is repeated, so far. `done`, `compared`: in global memory; the second are clusters."""

    tally: Tally = field(default_factory=Tally)
    done: list[GridChecked] = field(default_factory=list)
    compared: set[int] = field(default_factory=set)


@dataclass
class Replayable:
    """Those of one launch. `only`: which they are; None: all."""

    only: frozenset[int] | None = None
    sample: int = 0  # clusters at most; 0: there is no sample
    slices: Slices | None = None  # where not all clusters have logs
    some: LaunchSlice | None = None  # those that have
    skipped: int = 0  # clusters that are not replayed, and do what others did at addresses of their own
    unknown: int = 0  # clusters without a log that did what none before did
    began: float = field(default_factory=time.monotonic)

    def takes_sample(self, new: Sequence[int], clusters: int) -> None:
        """Some of the clusters that do what none did before."""
        self.only, self.sample = frozenset(new[place] for place in spread(len(new), clusters)), clusters

    def takes_slice(self, slices: Slices, some: LaunchSlice, there: Iterable[int], checked: Checked) -> None:
        """Those that are there. Results of earlier launches of one that is repeated count, too."""
        self.slices, self.some, checked.pairs = slices, some, slices
        self.only = frozenset(there) if self.only is None else self.only.intersection(there)
        checked.tally.add(self.retained.tally)

    def of(self, group: Group) -> Sequence[int]:
        """The clusters of a group that may be replayed."""
        return group.members if self.only is None else [cluster for cluster in group.members if cluster in self.only]

    def without_logs(self, group: Group) -> bool:
        """Whether a new group has no log. Then it is left to another slice."""
        left = self.slices is not None and not self.of(group)
        self.unknown += len(group.members) * left
        return left

    def why_not(self, cluster_ctas: int) -> str:
        """Why a group is not replayed that has no cluster in the sample."""
        return _NOT_IN_SAMPLE.format(self.sample * cluster_ctas)

    @property
    def retained(self) -> RetainedOfSlices:
        """The results of earlier slices of the launch, if it is repeated."""
        return RetainedOfSlices() if self.slices is None or self.slices.retained is None else self.slices.retained

    def compared(self, checked: Checked, done: list[GridChecked], clusters: set[int], wanted: tuple[int, int]) -> None:
        """Some clusters were compared in global memory. `wanted`: how many were to be, of how many."""
        if self.slices is not None:
            self.slices.retained = replace(self.retained, done=[each.copied() for each in done], compared=clusters)
            checked.pairs = self.slices
        elif wanted[0] < wanted[1]:
            why = ", as --sample asks" if self.sample else ": the file has the logs of these"
            some, all_ctas = (count * checked.collected.cluster_ctas for count in (len(clusters), wanted[1]))
            share = f"{some:,} of the {all_ctas:,} CTAs of a launch were compared{why}"
            checked.share += f"{'; ' * bool(checked.share)}{share}"

    def looked(self, checked: Checked) -> None:
        """All was looked at; `checked` says what was not. No slice is left if the clusters without a log did what is known."""
        if self.slices is None or self.some is None:
            if self.skipped:
                checked.gap(self.why_not(checked.collected.cluster_ctas), self.skipped)
            return
        self.slices.looked(self.some, time.monotonic() - self.began)
        if not (self.unknown or self.skipped or self.slices.pairs):
            self.slices.left.clear()
        self.slices.retained = replace(self.retained, tally=replace(checked.tally, launches=0, ctas=0, compared_ctas=0))
