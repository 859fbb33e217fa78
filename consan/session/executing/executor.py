"""Makes the launches of a session on its device: each as it is planned, watched to its end, and judged by its log."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, Final

from consan import late
from consan.backends.base import Dim3
from consan.backends.cost import COST
from consan.dataclass import dataclass
from consan.instrument.abi.variant import Variant
from consan.ranks.crew import refuse_alone
from consan.reports.model import Finding
from consan.reports.records.finding_records import ModuleSites
from consan.reports.verdict.speaking.shared import merge_key
from consan.session.executing.background import Background
from consan.session.executing.histories import Keeper
from consan.session.executing.judging import Judge, Restore
from consan.session.executing.launch_check import LaunchCheck
from consan.session.executing.loading import Modules
from consan.session.executing.recording import MOST_REPEATED, Recording
from consan.session.executing.watch import SessionWatch
from consan.session.modules.device import Device
from consan.session.modules.layouts import AddressName, AddressNames, variable_name_of
from consan.session.modules.prepared import Prepared
from consan.session.modules.variables import bound
from consan.session.planning.budget import OverheadBudget
from consan.session.planning.launch_sizes import check_residency
from consan.session.planning.options import MOST_MEMORY, SessionOptions
from consan.session.planning.plan import MOST_SLICES, PlannedLaunch
from consan.session.planning.schedules import Explored, KernelSchedules, Stopwatch
from consan.session.planning.selection import Selection

_INTO_GRAPH: Final = "it is launched into a graph: launch it by the framework, or without a graph"


@dataclass(frozen=True)
class RequestedRun:
    """A launch as its caller asks for it. `how`: shared, cluster, cooperative and stream, as `Backend.launch` has them.

    `restore`: gives the buffers their earlier contents, so that the launch can be repeated; None: it cannot be. `alone`: nothing else runs
    at the same time.
    """

    entry: str
    grid: Dim3
    block: Dim3
    args: Sequence[bytes]
    how: dict[str, Any]
    address_name: AddressName  # names bytes of global memory
    restore: Restore | None
    seed: int
    alone: bool


class Executor:
    """The launches of one session. `base`: the variant of the runtime for called hooks. `cta_limit`: CTAs that are watched (0: all)."""

    def __init__(self, device: Device, options: SessionOptions, base: Variant, cta_limit: int) -> None:
        self.device = device
        self.recording = Recording(options)
        self.keeper = Keeper(device, self.recording) if options.keep_histories else None
        self.modules = Modules(device, base, self.recording, fast=options.assembly == "fast")
        self.selection = Selection(options.filter, _budget(options))
        self.watch = SessionWatch(device, options.timeout, self.modules.used)
        self.names = AddressNames()  # of buffers in global memory, from the arguments of launches
        self.judge = Judge(device, self.modules, self.recording, self.watch, self.keeper, self.sites_of, cta_limit)
        if options.prove:
            self.judge.always = late.launch_proofs.LaunchProofs(options.prove, self.recording.add_note, device.backend.allocation)
        self.background = Background(device, self.judge, self.watch)
        self.schedules = KernelSchedules()
        self.budget = options.explore or 0.0  # seconds that are left for other schedules
        self._base = base
        self.executed = 0  # instructions on the virtual machine, over all threads
        self.ever_launched = False  # `forget` does not reset it
        self.repeats = False  # the launches of another executor

    def launch(self, prepared: Prepared, asked: RequestedRun) -> bool:
        """Launch a kernel, checked unless the filters leave it out. Returns whether it was."""
        refuse_alone(asked.entry)
        prepared = self.modules.for_cluster(prepared, math.prod(asked.how["cluster"]))
        taken = self.selection.accepts(prepared.number, asked.entry, (asked.grid, asked.block, asked.how["cluster"]))
        explores = self._explores(prepared, asked) if taken else None
        crosses = self._crosses(prepared, asked) if taken else None
        passed = None if explores is None else Stopwatch()
        while self._once(prepared, asked, taken=taken):
            pass
        if explores is not None and passed is not None:
            explores(passed)
        if crosses is not None:
            crosses()
        return taken

    def _crosses(self, prepared: Prepared, asked: RequestedRun) -> Callable[[], None] | None:
        """A function that repeats a launch with stores behind looks, if that may show a race; None: it is not repeated."""
        machine, schedules, key = getattr(self.device.backend, "machine", None), self.schedules, (prepared.plain, asked.entry)
        if self.repeats or machine is None or prepared.recorded is None or (*key, asked.grid, asked.block) in schedules.crossed:
            return None
        if asked.entry not in prepared.entries or not prepared.recorded.kernel(asked.entry).may_lack_order:
            return None
        schedules.crossed.add((*key, asked.grid, asked.block))
        restore = machine.saved(MOST_MEMORY)
        return None if restore is None else lambda: self._cross(machine, prepared, asked, restore)

    def _cross(self, machine: Any, prepared: Prepared, asked: RequestedRun, restore: Restore) -> None:
        """Repeat it where it has shown such stores. The memory is then as the launch has left it."""
        crossed = late.crossings.crossings(self.recording.findings, asked.entry)
        after = machine.saved(MOST_MEMORY) if crossed else None
        if after is None:
            return

        def run(text: str) -> list[Finding]:
            restore()
            other = self._other(late.crossings.MOST_SECONDS)
            other.budget = late.crossings.EXPLORED
            made = other.modules.prepare(text, prepared.name, math.prod(asked.how["cluster"]))
            made.framework = prepared.framework
            return other.repeated(made, replace(asked, restore=None))[0]

        try:
            text = bound(prepared.plain, lambda name: self.device.backend.symbol(prepared.loaded, name)[0])
            self.recording.findings.add(late.crossings.races(crossed, text, run))
        finally:
            after()

    def _explores(self, prepared: Prepared, asked: RequestedRun) -> Callable[[Stopwatch], None] | None:
        """A function that repeats a launch under other schedules, given the watch of the first one; None: it is not repeated."""
        schedules, machine, shape = self.schedules, getattr(self.device.backend, "machine", None), (asked.grid, asked.block)
        key = prepared.plain, asked.entry, *shape
        if machine is None or self.budget <= 0 or prepared.recorded is None or key in schedules.shapes:
            return None
        schedules.shapes.add(key)
        if not schedules.observed(prepared, asked.entry, math.prod(asked.block)):
            return None
        explored = schedules.explored.setdefault((prepared.plain, asked.entry), Explored())
        restore = machine.saved(late.exploration.MOST_MEMORY)
        if restore is None:
            explored.ended = "not explored: the memory of the program is too large to be kept"
            return None
        return lambda first: self._explore(machine, prepared, asked, explored, restore, first)

    def _explore(
        self, machine: Any, prepared: Prepared, asked: RequestedRun, explored: Explored, restore: Restore, first: Stopwatch
    ) -> None:
        """Repeat a launch under other schedules, as long as the budget allows. The memory is then as the launch has left it."""
        found = [*self.recording.findings, *self.watch.findings]
        refills, laps = set[Hashable](), set[Hashable]()
        if self.judge.reasons or any(each.severity == "error" for each in found):
            explored.ended = "not explored: what this schedule shows comes first"
            refills, laps = late.exploration.unread_refills(found), late.exploration.unread_laps(found)
            stuck = late.exploration.stuck_at_phases(found)
            if self.judge.reasons or not (refills or laps or stuck):
                return
            explored.ended = "" if stuck else explored.ended
        took, passed, budget = first(), Stopwatch(), self.budget
        after = machine.saved(late.exploration.MOST_MEMORY)

        def launch(seed: int, left: float) -> tuple[list[Finding], bool]:
            restore()
            return self._other(first.of_clock(left)).repeated(prepared, replace(asked, seed=seed, restore=None))

        keys = {merge_key(each) for each in found}
        exploration = late.exploration.Exploration(
            machine, launch, late.exploration.data_seed(asked.seed), lambda: budget - passed(), took, keys, explored
        )
        try:
            if refills or laps:
                exploration.find_readers(refills, laps)
            else:
                exploration.run()
        finally:
            after()
            self.budget -= passed()
        self.recording.findings.add(exploration.found)

    def _other(self, seconds: float) -> Executor:
        """An executor for one launch under another schedule, which ends after so many seconds."""
        options = self.recording.options.alone(timeout=seconds, keep_histories=False)
        other = Executor(self.device, options, self._base, self.judge.cta_limit)
        other.repeats = True
        other.recording.fixes.off, other.recording.histories, other.judge.proofs = True, self.recording.histories, self.judge.proofs
        return other

    def repeated(self, prepared: Prepared, asked: RequestedRun) -> tuple[list[Finding], bool]:
        """Make one launch: what was found, and whether it could be judged."""
        judged = late.exploration.quietly(lambda: self.launch(prepared, asked)) and not self.judge.reasons
        return [*self.recording.findings, *self.watch.findings], judged

    def _once(self, prepared: Prepared, asked: RequestedRun, *, taken: bool) -> bool:
        """Launch, and judge the log if there is one. Returns whether the launch is to be repeated; then the buffers are restored."""
        entry, grid, block, how = asked.entry, asked.grid, asked.block, asked.how
        unfollowed = _INTO_GRAPH if self.device.backend.capturing(how["stream"]) else ""
        self.recording.accesses.forget()
        recording = None
        divides = MOST_REPEATED if asked.restore else MOST_SLICES
        first, args = self._first(asked), tuple(asked.args)
        where = PlannedLaunch(grid, block, how["cluster"], unfollowed, first=first, divides=divides, asked=lambda: args)
        if taken:
            prepared, recording = self.judge.start(prepared, entry, where, asked.restore, asked.args)
        self.modules.used[prepared.number] = prepared
        self._named(prepared, entry, asked.address_name)
        handle = prepared.loaded if recording or (taken and prepared.recorded is None) else self.modules.plain(prepared)
        prepared.launched = prepared.launched or handle is prepared.loaded
        backend, timeout = self.device.backend, self.recording.options.timeout
        if first := where.first if recording is None or recording.memory is None else recording.memory.room.first:
            how = {**how, "first": first}
        if how["cooperative"]:
            check_residency(backend, handle, entry, grid, block, how["shared"])
        threads = math.prod(grid) * math.prod(block)
        text = prepared if handle is prepared.loaded else prepared.as_plain()
        judged = self.judge.judged(prepared, entry, recording, handle)
        with judged, self.modules.progress.launch(entry), self.watch.ending(text, entry, threads):
            result = backend.launch(handle, entry, grid, block, asked.args, seed=asked.seed, timeout=timeout, **how)
            self.executed += getattr(result, "instructions", 0)
            if recording is not None:
                recording.ended(result, alone=asked.alone)
            elif taken:
                self.recording.kernels.shapes.ran(prepared.plain, entry, grid, block)
            self.watch.after(text, entry, result, threads, alone=asked.alone)
        self.judge.news.tell(hooked=recording is None)
        return recording is not None and recording.repeats

    def _first(self, asked: RequestedRun) -> int:
        """How many CTAs of a launch start; 0: all."""
        threads, how = self.recording.first_threads, asked.how
        alone = math.prod(how["cluster"]) == 1 and not how["cooperative"]
        return max(1, threads // math.prod(asked.block)) if threads and alone else 0

    def replayed(self, prepared: Prepared, entry: str, recording: LaunchCheck, names: AddressName) -> None:
        """Check a launch out of a file of histories, as if it had just ended."""
        self._named(prepared, entry, names)
        prepared.launched = True
        self.judge.check(prepared, entry, recording)

    def _named(self, prepared: Prepared, entry: str, names: AddressName) -> None:
        self.ever_launched, prepared.address_name = True, names
        self.names.note(prepared, entry)

    def sites_of(self, prepared: Prepared) -> ModuleSites:
        """The module's sites for the report. The text is parsed only if there is something to report."""
        relations = late.between.TextRelations(lambda: prepared.instrumented.module)
        sites, entries = prepared.instrumented.sites, prepared.entries
        names = functools.partial(self.names.name, prepared.number)
        variables = functools.partial(variable_name_of, self.device, prepared)
        isa = self.recording.options.isa
        return ModuleSites(sites, entries, prepared.framework, prepared.layout, names, relations, isa=isa, variable_name=variables)

    def forget(self) -> None:
        """Start afresh after a report."""
        self.watch.forget()
        self.selection.forget()
        self.recording.forget()
        self.schedules.forget()
        if self.keeper is not None:
            self.keeper.forget()


def _budget(options: SessionOptions) -> OverheadBudget | None:
    share = options.filter.overhead
    return None if share is None else OverheadBudget(share, lambda: COST.seconds, lambda: COST.busy)


def base_variant(options: SessionOptions, variant: Variant | None) -> Variant:
    """The variant of the runtime for a session's called hooks."""
    return replace(variant or Variant(), isa=options.isa or (variant is not None and variant.isa))
