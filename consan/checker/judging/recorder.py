"""Records launches, and turns the checker's findings into the records from which a report is made.

A launch is checked as soon as it has ended: each history that no launch of the kernel had before, in both replay orders. Nothing is lost
silently: a log without room, CTAs that did not end, and a replay that cannot continue are reported, and make the verdict `incomplete`.

The CTAs of a cluster are replayed together. A CTA of a launch without clusters is one by itself (launch.py).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from consan.checker.compiled.concurrent_launches import Keep
from consan.checker.compiled.cores import replayed
from consan.checker.compiled.layouts import Level, Status
from consan.checker.compiled.patience import Patience
from consan.checker.compiled.replay import History, Replayed, replay
from consan.checker.judging.alike_launches import look_once
from consan.checker.judging.checked import WHY, Checked, Histories, HistoryName, Known, needs_replay
from consan.checker.judging.collected import Collected, LaunchedKernel
from consan.checker.judging.grid import GridChecked, access_gaps, by_cluster, check_copies, check_grid, replay_gaps
from consan.checker.judging.lanes_gone import parted
from consan.checker.judging.replayable import Replayable
from consan.checker.judging.restricted_fences import races_behind
from consan.checker.judging.spins import StoppedThreads, stopped_threads
from consan.checker.judging.sweep import FEWEST, sweep_of
from consan.checker.judging.tally import Tally
from consan.checker.logs.earlier import Earlier
from consan.checker.logs.grouping import Group, Grouped
from consan.checker.logs.log_lines import LaunchSlice
from consan.checker.logs.recorded_launch import RecordedLaunch
from consan.checker.logs.shares import LEAST, MOST_READ_ONCE, PairsOfLaunches, Parts, ReadOnce, Slices, most_bytes, spread
from consan.checker.logs.stops import Stop
from consan.dataclass import dataclass
from consan.instrument.effects import LANES
from consan.instrument.record import Recorded
from consan.instrument.record.families.global_memory import Mode
from consan.reports.verdict import scopes
from consan.reports.verdict.speaking.raw import forward, proven, selected, united, united_records

MOST_UNENDED = 16  # clusters that did not end are replayed up to this number
LONGEST_INTERRUPTED = 0.5  # seconds for all replays once the user has interrupted the launch
INTERRUPTED = "were not checked: it was interrupted"
LONGEST_UNENDED = 2.0  # seconds for them all: the launch has taken its time before
_ONE_BY_ONE = "{:,} CTAs were replayed one by one: what a thread may read too early (missing-order) was not looked for (--global on does)"
_MOST_KNOWN = 1 << 14


def check(
    launch: RecordedLaunch,
    recorded: Recorded,
    launched: LaunchedKernel,
    histories: Histories,
    *,
    limit: int = 0,
    exhaustive: bool = False,
    sample: int = 0,
    stop: Stop | None = None,
    patience: Patience | None = None,
    earlier: Earlier | None = None,
    keep: Keep = Keep.NOTHING,
    together: int = 0,
    pairs: PairsOfLaunches | None = None,
    pairs_seconds: float = math.inf,
    slices: tuple[Slices, LaunchSlice] | None = None,
) -> Checked:
    """Replay a launch that has ended, or that makes no progress. `limit`: only the first CTAs (0: all).

    `histories`: those of earlier launches, to which new ones are added. The findings of a known history are reported again; stored values
    are not compared again. `exhaustive`: each cluster is replayed. `sample`: at most so many CTAs are (0: all). `stop`: the fault that
    ended the launch. `patience`: what does not fit into its time is not checked. `earlier`: what earlier processes have replayed.
    `keep`: the result has the accesses to global memory, if all are known. `together`: a launch of more CTAs, which nothing orders, is
    replayed CTA by CTA (0: none). `pairs`: of sets of CTAs that earlier launches of this shape have compared; this one takes some seconds.
    `slices`: where not all CTAs have logs, and the slice that has.
    """
    found = launch.grouped(limit)
    if len(histories) > _MOST_KNOWN:
        histories.clear()
    before, (kernel, checked) = len(histories), (recorded.kernels[launched.entry], Checked(Collected(launched), Tally(1)))
    checker = _Checker(launch, recorded, checked, histories, exhaustive, patience or Patience(math.inf), earlier, keep)
    shape = launched.module, launched.entry, launched.grid, launched.block, launched.cluster
    parts = Parts(checker.reader.read, shape, PairsOfLaunches() if slices else pairs or PairsOfLaunches(), pairs_seconds)
    mode, ctas = kernel.mode, checked.collected.cluster_ctas
    checker.chooses(found, -(-sample // ctas), slices)
    if mode is Mode.SYNCED and not kernel.waits_together and 0 < together < found.clusters * ctas:
        mode = checker.one_by_one()
    whole = mode is Mode.SYNCED  # then the replay of the launch checks shared memory too
    if not whole:
        checker.check_all(found.groups)
    cancelled = checker.cancelled(found.unended)
    left = tuple(cluster for cluster in found.unended if cluster not in cancelled and launch.has(cluster))
    first = (stop.cluster,) if stop is not None and stop.cluster in left else ()
    unended = (*first, *(cluster for cluster in left if cluster not in first))
    if not whole:
        unended = checker.check_unended(unended[:MOST_UNENDED], stop.opened if stop is not None else (0, 0), stopped=recorded.leaves)
    stopped = whole and recorded.leaves and bool(left)
    look = functools.partial(checker.check_grid, found, mode, parts, whole=whole, stopped=stopped)
    alike = None if whole or found.unended or sample or slices else (launched, found.clusters, mode, keep)  # logs of `whole` have clocks
    checked.global_races = look_once(launch, checked, alike, look) if mode is not Mode.OFF else ()
    checked.tally.ctas = (found.clusters - len(cancelled)) * ctas
    checked.tally.histories += found.clusters if whole else len(histories) - before + len(unended)
    checked.unended, checked.deadlocked = len(unended) * ctas, bool(unended) and checker.deadlocked == len(unended)
    if more := len(found.unended) - len(cancelled) - len(unended):
        checked.gap("did not end, and were not checked", more)
    checker.share.looked(checked)
    if checked.global_races or checked.share or checked.pairs is not None or slices is not None:
        checked.retained = None
    return checked


@dataclass
class _Checker:
    launch: RecordedLaunch
    recorded: Recorded
    checked: Checked
    histories: Histories
    exhaustive: bool
    patience: Patience
    earlier: Earlier | None
    keep: Keep
    copies: bool = False  # global memory is not checked, but accesses that meet the copies of a CTA there
    share: Replayable = dataclasses.field(default_factory=Replayable)
    deadlocked: int = 0  # clusters that did not end

    def __post_init__(self) -> None:
        self.launched, self._window = self.checked.collected.launched, self.launch.window()
        # Addresses in global memory are no part of a history's name, so results of other processes say nothing of them.
        self.copies = not self.recorded.kernels[self.launched.entry].has_global and bool(self.recorded.blocks.global_sites)
        self.earlier = None if self.copies else self.earlier

    @functools.cached_property
    def reader(self) -> ReadOnce:
        """Reads histories of clusters, for either memory."""
        twice = self.recorded.kernels[self.launched.entry].mode is not Mode.OFF
        return ReadOnce(self.launch.histories, MOST_READ_ONCE * twice)

    def one_by_one(self) -> Mode:
        """Check each CTA for itself: their logs have no hashes. Findings that follow from the order of flags are missing."""
        self.exhaustive = True
        return Mode.ALONE

    def _unlooked(self, clusters: int, mode: Mode) -> tuple[str, ...]:
        """The findings that are not looked for where CTAs are checked each for itself."""
        kernel = self.recorded.kernels[self.launched.entry]
        lacks = mode is not kernel.mode and kernel.may_lack_order
        return (_ONE_BY_ONE.format(clusters * self.checked.collected.cluster_ctas),) if lacks else ()

    def check_all(self, groups: Sequence[Group]) -> None:
        """Check each history, new ones first."""
        needed = self.copies or self.exhaustive or self.recorded.kernels[self.launched.entry].mode is not Mode.OFF
        sweep = None if needed or len(groups) < FEWEST else sweep_of(self.launch, self.recorded, self.geometry, self.patience)
        for at, some in (sweep or self.reader).in_turn(groups):
            if self.patience.over(at, len(groups)):
                self._leave(groups[at:])
                return
            new = {self._name(group): self.share.of(group) for group in some}
            first = {name: members[0] for name, members in new.items() if members and name not in self.histories and not self._recall(name)}
            clear = sweep.known(first, self.checked.tally) if sweep is not None else {}
            self.histories.update(clear)
            for _, names in self.reader.in_turn([name for name in first if name not in clear]):
                self.histories.update(zip(names, self.replayed([first[name] for name in names]), strict=True))
            for name in first if self.earlier is not None else ():
                self._remember(name)
            for group in some:
                self._check(group)

    @functools.cached_property
    def geometry(self) -> History:
        """The history of a cluster without its log."""
        none = np.zeros((0, 0, LANES), np.uint32)
        return History(none, math.prod(self.launched.block), *self._window, self.checked.collected.cluster_ctas)

    def _recall(self, name: tuple[object, ...]) -> bool:
        """Whether an earlier process has found nothing in this history."""
        if self.earlier is None or self.exhaustive or not self.earlier.knows(name[1:]):
            return False
        self.histories[name] = Known([], frozenset(), self.geometry)
        self.checked.tally.recalled += 1
        return True

    def _remember(self, name: tuple[object, ...]) -> None:
        known = self.histories[name]
        if self.earlier is not None and not (known.found or known.lanes_gone or known.troubles or known.by_address or known.overtaken):
            self.earlier.add(name[1:])

    def chooses(self, found: Grouped, sample: int, slices: tuple[Slices, LaunchSlice] | None) -> None:
        """Replay at most so many clusters: some of those that do what none did before, in this launch or in an earlier one. 0: all."""
        if sample:
            new = (cluster for group in found.groups if self._is_new(group) for cluster in group.members)
            self.share.takes_sample(sorted(filter(self.launch.has, new)), sample)
        if slices is not None:
            self.share.takes_slice(*slices, filter(self.launch.has, range(found.clusters)), self.checked)

    def _is_new(self, group: Group) -> bool:
        return needs_replay(self._name(group), self.histories)

    def _leave(self, groups: Sequence[Group]) -> None:
        """There is no time for new histories."""
        for group in groups:
            if self.patience.interrupted:
                self._give_up(len(group.members))
            elif self._is_new(group) and self.share.without_logs(group):
                continue
            elif self._is_new(group):
                self.checked.leave(self._name(group), self._longer, len(group.members))
            else:
                self._check(group)

    def _give_up(self, clusters: int) -> None:
        self.checked.gap(INTERRUPTED if self.patience.interrupted else self._longer, clusters)

    @property
    def _longer(self) -> str:
        return f"were not checked: that would take more than {self.patience.seconds:.3g} s (--sample N checks some, --engine inline all)"

    def _name(self, group: Group) -> HistoryName:
        launched = self.launched
        return (launched.module, launched.entry, launched.block, launched.cluster, self._window, group.name)

    def _check(self, group: Group) -> None:
        name, members = self._name(group), self.share.of(group)
        known = self.histories.get(name)
        if known is None and not members:
            if not self.share.without_logs(group):
                self.checked.leave(name, self.share.why_not(self.checked.collected.cluster_ctas), len(group.members))
            return
        if known is not None and Status.HALTED in known.troubles and not self.patience.interrupted:
            del self.histories[name]
            self.checked.add(group.members[0], len(group.members), replace(known, troubles=known.troubles - {Status.HALTED}))
            self.checked.leave(name, WHY[Status.HALTED], len(group.members))
            return
        if known is not None:
            self.checked.by_address |= known.by_address
        if known is not None and not (known.by_address or self.exhaustive):
            self.checked.add(group.members[0], len(group.members), known)
            return
        for at, clusters in self.reader.in_turn(members):
            if self.patience.over(at, len(members)):
                self._give_up(len(members) - at)
                return
            for cluster, own in zip(clusters, self.replayed(clusters), strict=True):
                self.checked.add(cluster, 1, own)
        self.share.skipped += len(group.members) - len(members)

    def cancelled(self, unended: Sequence[int]) -> set[int]:
        """The clusters that never run, since another one has cancelled their launch."""
        return {each for each in unended if self.recorded.takes_clusters and not self.launch.histories([each])[0].log.any()}

    def check_unended(self, clusters: tuple[int, ...], opened: tuple[int, int], *, stopped: bool) -> tuple[int, ...]:
        """The clusters that did not end and were checked, as far as they came: those for which there is time."""
        longest = LONGEST_INTERRUPTED if self.patience.interrupted else LONGEST_UNENDED
        whole, self.patience = self.patience, Patience(longest, halt=self.patience.halt)
        checked = clusters
        for at, cluster in enumerate(clusters):
            if self.patience.over(at, at + 1):
                checked = clusters[:at]
                break
            self._check_unended(cluster, opened, stopped=stopped)
        whole.interrupted |= self.patience.interrupted
        self.patience = whole
        return checked

    def _check_unended(self, cluster: int, opened: tuple[int, int], *, stopped: bool) -> None:
        """A cluster that did not end, as far as it came. The backend says how the launch ended, unless the host has `stopped` it."""
        (known,) = self.replayed([cluster], opened, closed=stopped)
        self.checked.add(cluster, 1, replace(known, troubles=known.troubles - {Status.STUCK}))
        self.deadlocked += known.deadlocked
        if stopped and known.positions is not None:
            self.checked.positions += tuple(self.checked.collected.positions(cluster, known.positions, known.geometry))

    def replayed(self, clusters: Sequence[int], opened: tuple[int, int] = (0, 0), *, closed: bool = False) -> list[Known]:
        """Replay clusters in both orders, but those for which the first one decides (Blocks.in_any_order)."""
        if not clusters or self.patience.halt.value:
            return [Known([], frozenset((Status.HALTED,)), self.geometry) for _ in clusters]
        histories = self.reader.read(clusters)

        def each(history: History, order: bool | None) -> Any:
            return self._copies(history) if order is None else self._replayed(history, opened, closed, order)

        def all_in(*orders: bool | None, of: Sequence[History] = histories) -> list[list[Any]]:
            tasks = [(history, order) for order in orders for history in of]
            done = iter(replayed(each, tasks, sum(history.log.nbytes for history in of), self.patience))
            return [[next(done) for _ in of] for _ in orders]

        if self.recorded.blocks.in_any_order and histories[0].ctas == 1:
            first, *copies = all_in(False, *[None] * self.copies)
            (more,) = all_in(True, of=[history for history, one in zip(histories, first, strict=True) if one.has_found])
            second = [more.pop(0) if one.has_found else one for one in first]
        else:
            first, second, *copies = all_in(False, True, *[None] * self.copies)
        found = copies[0] if copies else [[]] * len(histories)
        return [self._known(history, list(done), each) for history, *done, each in zip(histories, first, second, found, strict=True)]

    def _copies(self, history: History) -> list[Any]:
        """The findings at its copies and accesses in global memory."""
        unordered = self.recorded.kernels[self.launched.entry].unordered
        return check_copies(self.recorded.blocks, history, self.recorded.isa, self.patience, unordered=unordered)

    def _known(self, history: History, done: list[Replayed], of_copies: list[Any]) -> Known:
        self.checked.tally.events += sum(each.events for each in done)
        troubles = {each.status for each in done} - {Status.OK, Status.UNDEFINED}
        whole = [each for each in done if each.status is not Status.CORRUPT]
        deadlocked = all(each.proven for each in done)
        orders, lanes_gone = parted((each.records for each in whole), history.cta_threads)
        found = united(orders, undefined=any(each.status is Status.UNDEFINED for each in whole))
        found = [*proven(found, deadlocks=deadlocked), *of_copies]
        by_address, overtaken = (any(getattr(each, name) for each in done) for name in ("by_address", "overtaken"))
        return Known(found, frozenset(troubles), history.without_log(), by_address, overtaken, deadlocked, done[0].positions, lanes_gone)

    def _replayed(self, history: History, opened: tuple[int, int], closed: bool, descending: bool) -> Replayed:
        how: dict[str, Any] = {"isa": self.recorded.isa, "opened": opened, "closed": closed, "halt": self.patience.halt}
        how["descending"] = descending

        def at(level: Level) -> Replayed:
            some = functools.partial(replay, self.recorded.blocks.tables, history, level=level, **how)
            done = some()
            if not self.recorded.blocks.restricted:
                return done
            more = races_behind(lambda which: some(restricted=which).records, done.records, history.cta_bytes, history.ctas)
            return replace(done, records=np.array([*done.records, *more], done.records.dtype))

        exact = at(Level.EXACT)
        if history.ctas == 1:
            return exact
        return replace(exact, records=scopes.named(exact.records, lambda: at(Level.WAIT_SCOPES).records, lambda: at(Level.SCOPES).records))

    def check_grid(self, grouped: Grouped, mode: Mode, parts: Parts, *, whole: bool, stopped: bool) -> tuple[str, ...]:
        """Check global memory, and if `whole` shared memory too; returns what was not checked. `stopped`: by the host.

        Where no CTA waits for another one, two sets of them are compared at a time, if the logs of all are too long, or those of a sample.
        """
        if not grouped.clusters:
            return ()
        done, compared = [each.copied() for each in self.share.retained.done], set(self.share.retained.compared)
        wanted = self._compared(grouped.clusters, whole=whole)
        first: History | None = None
        for known in parts.read(wanted, most_bytes(self.patience), divides=mode is not Mode.SYNCED):
            some = next(iter(known.values())).without_log()
            histories = [known.get(cluster, some) for cluster in range(grouped.clusters)]
            first = first or histories[0]
            done += self._check_histories(histories, mode, whole=whole, stopped=stopped, counts=compared.isdisjoint(known))
            compared.update(known)
            if any(each.status is Status.HALTED for each in done):  # this pair is left to a later launch
                break
        if first is None:
            too_large = f"the logs of a launch take more than {most_bytes(self.patience) >> 20:,} MiB"
            if whole:
                self.checked.gap(f"were not replayed: {too_large}", grouped.clusters)
            return (too_large,)
        checked, collected = self.checked, self.checked.collected
        checked.pairs, ctas = parts.pairs, len(compared) * collected.cluster_ctas
        self.share.compared(checked, done, compared, (len(wanted), grouped.clusters))
        checked.retained = collected.numbered(done[0].retained, first) if done[0].retained is not None else None
        checked.tally.add(Tally(compared_ctas=ctas))
        found = selected(forward(united_records([each.records for each in done if "unseen" not in each.gaps])))
        collected.add_global_races(found, first)
        stood = stopped_threads(done, collected, first) if stopped else StoppedThreads()
        checked.positions, checked.polls = checked.positions + stood.positions, stood.polls
        deadlocks = stood.waits and not stood.polls
        self.deadlocked += len(grouped.unended) * deadlocks
        for cluster, records in by_cluster(done).items():
            orders, noted = parted(records, first.cta_threads)
            collected.note(cluster, noted)
            collected.add(cluster, 1, proven(selected(united_records(orders)), deadlocks=deadlocks), first)
        incomplete = replay_gaps(done, ended=not grouped.unended)
        if whole:
            for why in incomplete:
                checked.gap(f"were replayed together, and {why}", grouped.clusters)
        return (*access_gaps(done), *incomplete, *self._unlooked(grouped.clusters, mode))

    def _check_histories(self, histories: list[History], mode: Mode, *, whole: bool, stopped: bool, counts: bool) -> list[GridChecked]:
        """Compare what clusters did; those without a log did nothing. `counts`: none of them was compared before."""
        how: dict[str, Any] = {"isa": self.recorded.isa, "keep": self.keep, "patience": self.patience, "stopped": stopped}
        how["restricted"] = self.recorded.blocks.restricted
        how |= {"ranks": self.launched.ranks, "rank_memory": self.launched.rank_memory}
        how |= {"memory_of": self._texture_memory, "before": self.launch.memory_before}
        done = check_grid(self.recorded.blocks.tables, histories, mode, whole=whole, **how)
        self.checked.tally.add(Tally(events=sum(each.events for each in done)))
        if counts:
            self.checked.tally.add(Tally(accesses=done[0].accesses, compared=done[0].compared))
        return done

    def _texture_memory(self, handle: int) -> Any:
        self.checked.by_address = True
        return self.launch.texture_memory(handle)

    def _compared(self, clusters: int, *, whole: bool) -> Sequence[int]:
        """The clusters whose accesses to global memory are compared. A launch that is replayed as a whole needs all."""
        if whole:
            return range(clusters)
        chosen = range(clusters) if not self.share.sample else sorted(spread(clusters, max(LEAST, self.share.sample)))
        return [cluster for cluster in chosen if self.launch.has(cluster)]
