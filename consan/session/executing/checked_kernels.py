"""The checks of each kernel since the last report: the launches that were checked, and why others were not."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Final

from consan.backends.base import Dim3
from consan.checker.judging.checked import Checked, Histories
from consan.checker.judging.tally import ProvenLaunches, Tally
from consan.checker.logs.shares import Pairs, Slices
from consan.dataclass import dataclass
from consan.reports.counts import plural
from consan.session.executing.launch_check import LaunchCheck
from consan.session.modules.prepared import LogShape
from consan.session.planning.plan import NOTHING_KNOWN
from consan.session.planning.shapes import LaunchShapes

if TYPE_CHECKING:
    from consan.reports.model import AllLaunchesProof
    from consan.session.modules.prepared import Prepared

MOST_SHOWN: Final = 1 << 12
FIRST_ONLY: Final = "only the first launches of a kernel are looked at (--global on looks at all)"


@dataclass
class CheckedKernel:
    """One kernel of one form of a module."""

    tally: Tally = field(default_factory=Tally)
    proofs: ProvenLaunches = field(default_factory=ProvenLaunches)
    unrecorded: Counter[str] = field(default_factory=Counter)  # launches that ran as they are, by why
    global_gaps: dict[str, None] = field(default_factory=dict)  # why its global memory was not checked in full
    pairs: dict[LogShape, Pairs | Slices] = field(
        default_factory=dict
    )  # of sets of CTAs, of launches of a shape whose logs are too long for all
    beyond: str = ""  # the one of them that makes the report incomplete
    partial: int = 0  # launches whose global memory was not compared in full
    looked: int = 0  # launches that took the form with global memory instead of this one
    proof: AllLaunchesProof | None = None  # that no launch of it has a race
    covered: int = 0  # launches that this proof covers
    unlogged: int = 0  # of these, those that were not recorded
    compared: bool = True  # the accesses of all its launches were kept, for a comparison with other launches


@dataclass
class CheckedKernels:
    """Those of a session."""

    shapes: LaunchShapes = field(default_factory=LaunchShapes)
    of_streams: tuple[str, ...] = ()  # why launches were not compared with those of other streams, if there are any
    silent: Histories = field(default_factory=dict)  # of launches that record nothing: they wait for no other check
    _kernels: dict[tuple[int, str], CheckedKernel] = field(default_factory=dict)
    _shown: set[Hashable] = field(default_factory=set)  # launches of proven kernels that were recorded: what others like them do
    _alike: dict[tuple[object, ...], Tally] = field(default_factory=dict)  # of launches of kernels that record nothing: what equal ones add

    def of(self, prepared: Prepared, entry: str) -> CheckedKernel:
        """The facts about a kernel."""
        kernel = self._kernels.get((prepared.number, entry))  # it takes long to make one
        return kernel if kernel is not None else self._kernels.setdefault((prepared.number, entry), CheckedKernel())

    def note(self, prepared: Prepared, entry: str, started: LaunchCheck, checked: Checked, *, keeps: bool, asked: bool) -> None:
        """Count what was checked of a launch. `keeps`: its accesses are compared with other launches. `asked`: others ask it more."""
        kernel, launched = self.of(prepared, entry), started.launched
        kernel.compared &= keeps
        for why in filter(None, (*checked.global_races, checked.share)):
            self.lacks_global_races(prepared, entry, why)
        if checked.pairs is not None:
            kernel.pairs[started.shape] = checked.pairs
        kernel.partial += bool(checked.global_races)
        compared = started.recorded.has_global(entry) and not checked.global_races and checked.compares_all_pairs
        self.shapes.ran(prepared.plain, entry, launched.grid, launched.block, looked=compared or started.proven.accesses > 0)
        kernel.tally.add(checked.tally)
        if started.proven.always is not None:
            self.counts_always(prepared, entry, started.proven.always, launched.grid, launched.block, recorded=True)
        if started.proven.accesses:
            self.counts_proven(prepared, entry, started.proven.accesses, launched.grid)
        known = started.proven != NOTHING_KNOWN
        if started.silent and checked.is_whole and not (known or checked.found or checked.global_races or asked):
            self._alike[prepared.number, entry, launched.grid, launched.block, launched.cluster] = Tally(1, checked.tally.ctas)

    def counts_again(self, prepared: Prepared, entry: str, grid: Dim3, block: Dim3, cluster: Dim3, times: int = 1) -> bool:
        """Count launches of a kernel that records nothing, if one like them was judged. Returns whether it did."""
        if (count := self.counter(prepared, entry, grid, block, cluster)) is not None:
            count(times)
        return count is not None

    def counter(self, prepared: Prepared, entry: str, grid: Dim3, block: Dim3, cluster: Dim3) -> Callable[[int], None] | None:
        """The same for launches whose number is known later, maybe behind a report. None: none like them was judged."""
        alike = self._alike.get((prepared.number, entry, grid, block, cluster))

        def count(times: int) -> None:
            assert alike is not None
            self.of(prepared, entry).tally.add(Tally(times * alike.launches, times * alike.ctas))

        return None if alike is None else count

    def knows(self, prepared: Prepared, entry: str, grid: Dim3, block: Dim3, cluster: Dim3) -> bool:
        """Whether `counts_again` would count a launch."""
        return (prepared.number, entry, grid, block, cluster) in self._alike

    def counts_proven(self, prepared: Prepared, entry: str, accesses: int, grid: Dim3, times: int = 1) -> None:
        """Count launches whose accesses to global memory, so many in each launch, are proven apart."""
        self.adds_proofs(prepared, entry, ProvenLaunches(times, times * accesses, times * math.prod(grid)))

    def counts_always(
        self, prepared: Prepared, entry: str, proof: AllLaunchesProof, grid: Dim3, block: Dim3, *, recorded: bool, times: int = 1
    ) -> None:
        """Count launches that a proof for all launches covers. `recorded`: without their global memory."""
        kernel = self.of(prepared, entry)
        self.shapes.ran(prepared.plain, entry, grid, block, looked=True)
        kernel.proof, kernel.covered = proof.joined(kernel.proof), kernel.covered + times
        kernel.unlogged += 0 if recorded else times
        compared = math.prod(grid) if recorded else 0
        kernel.tally.add(Tally(launches=0 if recorded else times, proven_launches=times, compared_ctas=compared))

    def covers(self, prepared: Prepared, entry: str, proof: AllLaunchesProof) -> None:
        """A proof for all launches covers one that was recorded in full."""
        kernel = self.of(prepared, entry)
        kernel.proof, kernel.covered = proof.joined(kernel.proof), kernel.covered + 1

    def shows(self, like: Hashable) -> bool:
        """Whether a launch like one of a proven kernel was recorded (`LaunchProofs.like`)."""
        return like in self._shown

    def keep_shown(self, like: Hashable) -> None:
        """A launch of a proven kernel is recorded. None: data may decide what others do."""
        if like is not None and len(self._shown) < MOST_SHOWN:
            self._shown.add(like)

    def adds_proofs(self, prepared: Prepared, entry: str, proofs: ProvenLaunches) -> None:
        """Count proofs."""
        kernel = self.of(prepared, entry)
        kernel.tally.add(
            Tally(accesses=proofs.accesses, proven_launches=proofs.launches, proven=proofs.accesses, compared_ctas=proofs.ctas)
        )
        kernel.proofs = kernel.proofs.plus(proofs)

    def lacks_global_races(self, prepared: Prepared, entry: str, why: str) -> None:
        """Keep why a kernel's global memory was not checked in full."""
        self.of(prepared, entry).global_gaps[why] = None

    def lacks_record(self, prepared: Prepared, entry: str, why: str, times: int = 1) -> None:
        """Count launches that are not recorded, and keep why."""
        self.of(prepared, entry).unrecorded[why] += times
        self.lacks_global_races(prepared, entry, why)

    def lacks_comparison(self, prepared: Prepared, entry: str, why: str) -> None:
        """Keep why a launch may race with what nobody looks at: the report is incomplete."""
        self.lacks_global_races(prepared, entry, why)
        self.of(prepared, entry).beyond = why

    def is_beyond(self, prepared: Prepared, entry: str) -> bool:
        """Whether the report is incomplete, because launches of a kernel may race with what nobody looks at."""
        return bool(self.of(prepared, entry).beyond)

    def tally(self, prepared: Prepared, entry: str) -> Tally:
        """How much of a kernel was checked."""
        return self.of(prepared, entry).tally

    def proof(self, prepared: Prepared, entry: str, launches: int) -> AllLaunchesProof | None:
        """The proof that no launch of a kernel has a race, if it covers so many launches: all that were made."""
        kernel = self.of(prepared, entry)
        return kernel.proof if kernel.covered == launches + kernel.looked else None

    def unrecorded(self, prepared: Prepared, entry: str) -> Mapping[str, int]:
        """The launches of a kernel that were not recorded, by why."""
        return self.of(prepared, entry).unrecorded

    def global_race_launches(self, prepared: Prepared, entry: str) -> int:
        """Launches of a kernel whose accesses to global memory were compared in full, or proven apart."""
        kernel = self.of(prepared, entry)
        whole = prepared.recorded is not None and prepared.recorded.has_global(entry)
        return (kernel.tally.launches if whole else kernel.tally.proven_launches) - kernel.partial

    def slices_left(self, prepared: Prepared, entry: str) -> tuple[str, ...]:
        """The slices of a kernel's launches that were not looked at."""
        known = self.of(prepared, entry).pairs.values()
        return tuple(dict.fromkeys(each.why for each in known if isinstance(each, Slices) and each.left))

    def global_race_gaps(self, prepared: Prepared, entry: str) -> tuple[str, ...]:
        """Why the global memory of a kernel that ran was not checked in full, where it was to be."""
        return (*self._gaps_of_kernel(prepared, entry), *self.of_streams)

    def _gaps_of_kernel(self, prepared: Prepared, entry: str) -> tuple[str, ...]:
        kernel = self.of(prepared, entry)
        of_launches, tally = (*kernel.global_gaps, *(each.why for each in kernel.pairs.values() if each.left)), kernel.tally
        if prepared.recorded is None:
            return ("called hooks do not look for them", *of_launches)
        missed = tally.launches - tally.proven_launches
        if not prepared.recorded.has_global(entry) and missed:
            whole = tally.launches + kernel.looked
            return (f"{missed:,} of {plural(whole, 'launch', 'launches')}: {'; '.join(of_launches or (FIRST_ONLY,))}",)
        return of_launches

    def forget(self) -> None:
        """Start anew, for the next report."""
        self.shapes.clear()
        self.of_streams = ()
        self._shown.clear()
        self._kernels.clear()
        self.silent.clear()
        self._alike.clear()
