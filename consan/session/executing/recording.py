"""The recording engine in a session: its memory, what it has checked, and which launches could not be recorded.

`--engine auto` and `record` mean it. A launch that cannot be recorded runs as it is: the report is `incomplete`, and says why.

Not handled: the log of a launch on a GPU that ends with a fault.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from consan import late
from consan.backends.base import Backend
from consan.checker.compiled.build import CHECKER, library
from consan.checker.compiled.concurrent_launches import Keep
from consan.checker.compiled.patience import Patience
from consan.checker.judging.checked import Checked, Histories
from consan.checker.judging.collected import LaunchedKernel
from consan.checker.judging.left_histories import LeftHistories
from consan.checker.judging.starting import start
from consan.checker.logs.earlier import Earlier
from consan.checker.logs.expand import begin
from consan.checker.logs.log_lines import USUAL_ROOM, LogRoom
from consan.checker.logs.memory import MOST_RETAINED, LogMemory
from consan.checker.logs.pieces import LogForm, NoRoom
from consan.checker.logs.shares import PairsOfLaunches, Slices
from consan.dataclass import dataclass
from consan.instrument import Instrumented, Places
from consan.instrument.abi.variant import Variant
from consan.instrument.record import Recorded
from consan.instrument.record.families.global_memory import Mode
from consan.instrument.record.text.templates import LINE_BYTES
from consan.instrument.rewriting.ranked import ranks_of, stride_of_ranks
from consan.reports import model
from consan.reports.counts import plural
from consan.reports.decoding.undefined_shuffles import UndefinedShuffles
from consan.reports.records.finding_records import ModuleSites
from consan.reports.verdict.speaking.merging import Accumulated
from consan.session.comparing.comparisons import LaunchAccesses
from consan.session.executing.checked_kernels import CheckedKernels
from consan.session.executing.launch_check import LaunchCheck, ReplayChoice
from consan.session.modules.rewritten import Rewriting
from consan.session.planning.launch_sizes import warps_of
from consan.session.planning.options import SessionOptions
from consan.session.planning.plan import LogPlan, Unasked

if TYPE_CHECKING:
    from consan.checker.judging.collected import LaunchedKernel
    from consan.checker.logs.recorded_launch import RecordedLaunch
    from consan.instrument.ptx import Module
    from consan.reports.verdict.speaking.terms import Key
    from consan.session.modules.prepared import LogShape, Prepared

_GiB = 1 << 30
_MOST_ON_CPU = 4 * _GiB  # memory that a backend gives zeroed costs nothing until it is touched
_SHARE = 32  # of a GPU's memory
WITH_HOOKS: Final = "--engine inline checks it with called hooks"
_GLOBAL_RACE: Final = "global-race"
_MOST_DECODED: Final = 256  # launches
_SHUFFLE: Final = "shfl.sync"  # in the text of a module
_LONGEST_AWAITED: Final = 20.0  # seconds of replays while a kernel of another GPU may wait: its host stops it after 30 s (watch.py)
MOST_REPEATED: Final = 1 << 10  # slices of a launch that can be repeated
LONGEST_REPEATED: Final = 180.0  # seconds for them
_MORE: Final = 2  # times as long as the last one, if the log of a loop was full
SLOW: Final = 10.0  # seconds: of later launches of a kernel whose replays have taken longer, a few CTAs are replayed


Asker = Callable[["Prepared", "LaunchCheck", Checked], None]
ASKERS: list[Asker] = []
"""Functions that get each recorded launch of this process: pytest scores a suite (consan/plugin/mutate.py)."""


@dataclass
class Fixes:
    """The search for verified fixes in a session (repairs.py).

    A launch is asked only if it shows findings that no launch of its kernel has shown before, and only as long as the session's allowance
    of replayed events lasts: what a place costs does not grow with its launches.
    """

    off: bool = False
    seconds: float = 0.0  # of processor time, that it has taken
    _events: int = 0
    _seen: dict[tuple[int, int], set[Key]] = field(default_factory=dict)  # by kernel

    def of(
        self, prepared: Prepared, launch: RecordedLaunch, launched: LaunchedKernel, checked: Checked, limit: int, places: ModuleSites
    ) -> dict[int, model.VerifiedFix]:
        """The fixes of a launch that was just checked, by the number of the finding. `places`: of the report's words."""
        seen = self._seen.setdefault((launched.module, launched.entry), set())
        if self.off or seen.issuperset(checked.keys) or prepared.recorded is None or self._spent:
            return {}
        seen.update(checked.keys)
        found, events, seconds = late.repairs.fixes_of(prepared, launch, launched, checked, limit, places)
        self._events, self.seconds = self._events + events, self.seconds + seconds
        return found

    @property
    def _spent(self) -> bool:
        events, seconds = late.repairs.MOST
        return self._events >= events or self.seconds >= seconds


@dataclass
class Recording:
    """The recording engine of a session."""

    options: SessionOptions
    histories: Histories = field(default_factory=dict)  # since the last report
    findings: Accumulated = field(default_factory=Accumulated)
    fixes: Fixes = field(default_factory=Fixes)
    left: LeftHistories = field(default_factory=LeftHistories)
    pairs: PairsOfLaunches = field(default_factory=PairsOfLaunches)  # of sets of CTAs
    asker: Asker | None = None  # asks each launch that was checked
    sliced: list[Slices] = field(default_factory=list)  # of all shapes whose logs have no room
    notes: dict[str, None] = field(default_factory=dict)
    accesses: LaunchAccesses = field(default_factory=LaunchAccesses)  # for comparisons with other launches
    kernels: CheckedKernels = field(default_factory=CheckedKernels)
    rank_memory: int = 0  # where the symmetric memory of a launch of several ranks begins
    first_threads: int = 0  # on the virtual machine the first CTAs of a grid start, with so many threads in sum; 0: all
    _earlier: dict[int, Earlier] = field(default_factory=dict)  # by module
    _decoded: dict[Hashable, list[model.Finding]] = field(default_factory=dict)  # by what the checker has found

    @property
    def asked(self) -> bool:
        """Whether more is done with the log of a launch than to look for findings."""
        return self.options.exhaustive or self.asker is not None or bool(ASKERS)

    def rewritten(
        self, ptx: str, read: Callable[[], Module], *, global_races: bool, leaves: bool, refusal: str = "", delays: bool = False
    ) -> tuple[Instrumented, Recorded]:
        """The recorded module. `leaves`: threads leave when the host says so. `refusal`: why no kernel may be recorded.
        `delays`: warps wait at synchronising instructions.

        Raises `PtxSyntaxError`, and `EnvironmentFailure` where there is no checker.
        """
        rewriting = Rewriting(ptx, read, global_races, self.options.isa, leaves, self.options.remembers, refusal, delays)
        done, waits = rewriting.done()
        library()
        if rewriting.made:  # else its histories are mostly known
            begin(done, _machine)
        return _as_instrumented(read, done, waits), done

    def most_bytes(self, memory: LogMemory, *, roomy: bool = False) -> int:
        """Limit on the memory for logs. `roomy`: of a kernel whose log was full."""
        if self.options.trace_memory is not None:
            return self.options.trace_memory
        if memory.backend.allocates_zeros:
            return _most_bytes(None)
        return memory.free_bytes() // 4 * 3 if roomy else min(_most_bytes(memory.backend.memory_bytes), memory.free_bytes() // 2)

    @property
    def pool_bytes(self) -> int:
        """The memory that launches may keep for later ones."""
        return MOST_RETAINED if self.options.trace_memory is None else self.options.trace_memory

    def start(self, memory: LogMemory, prepared: Prepared, log: LogPlan, words: int = 0, *, background: bool = False) -> LaunchCheck:
        """Make the memory for a launch. `words`: that a thread stores at most; 0: not known. `background`: the program goes on meanwhile.

        Raises `NoRoom`.
        """
        assert prepared.recorded is not None
        ranked = ranks_of(prepared.plain), (self.rank_memory, stride_of_ranks(prepared.plain))
        launched = LaunchedKernel(prepared.number, log.kernel, log.grid, log.block, log.cluster, *ranked)
        most, shape = self.most_bytes(memory, roomy=prepared.logs.roomy), log.shape
        room = prepared.logs.room(shape, roomy=log.roomy, most=words)
        how: dict[str, Any] = {"room": replace(room, first=log.first), "background": background, "machine": _machine}
        memory.most_retained = self.pool_bytes
        launch = start(memory, prepared.loaded, prepared.recorded, launched, most, **how)
        if log.slow:
            entry = prepared.entries[log.kernel]
            self.notes[
                f"{entry}: its replays take long, so of each later launch {log.sample} more CTAs are replayed (--exhaustive: all)"
            ] = None
        awaited = log.hurried and self.accesses.keep is Keep.PEER_FLAGS
        patience = Patience(min(log.seconds, _LONGEST_AWAITED) if awaited else log.seconds, log.hurried)
        slices = None if room.some is None else (prepared.logs.slices[shape], room.some)
        choice = ReplayChoice(self.options.exhaustive, log.sample, log.together, self.accesses.keep, self.pairs, slices, log.divides)
        known = self.kernels.silent if launch.silent else self.histories
        started = LaunchCheck(launch, launched, prepared.recorded, known, choice, patience=patience, memory=launch)
        started.earlier = None if launch.silent else self._earlier_of(prepared)
        return started

    def _earlier_of(self, prepared: Prepared) -> Earlier | None:
        if not self.options.remembers or prepared.recorded is None:
            return None
        if prepared.number not in self._earlier:
            self._earlier[prepared.number] = Earlier(prepared.recorded)
        return self._earlier[prepared.number]

    @property
    def asks_all(self) -> bool:
        """Whether each launch is looked at by itself, whatever earlier ones did."""
        return bool(self.asked or self.options.sample or (self.accesses.logged and not self.accesses.later))

    def fixes_of(self, prepared: Prepared, started: LaunchCheck, checked: Checked, sites: ModuleSites) -> Mapping[int, model.VerifiedFix]:
        """The fixes of the findings of a launch, by their numbers."""
        if started.ending.stopped or started.patience.halt.value or not checked.found or started.choice.slices is not None:
            return {}
        return self.fixes.of(prepared, started.launch, started.launched, checked, started.limit, sites)

    def note(self, prepared: Prepared, entry: str, started: LaunchCheck, checked: Checked, sites: ModuleSites) -> None:
        """Keep what was found, and count what was checked."""
        self.left.note(entry, checked, self.histories)
        for ask in (*filter(None, (self.asker,)), *ASKERS):
            ask(prepared, started, checked)
        if checked.found:
            found = _times(self._decode(checked, prepared, sites), checked.tally.launches)
            self.findings.add(each for each in found if not (self.options.global_excluded and each.kind == _GLOBAL_RACE))
        launched = checked.collected.launched
        undefined = UndefinedShuffles(entry, launched.block, launched.ctaid, sites)
        self.findings.add(undefined.findings(checked.collected.lanes_gone, everywhere=_SHUFFLE in prepared.plain))
        self.kernels.note(prepared, entry, started, checked, keeps=started.choice.keep is not Keep.NOTHING, asked=self.asked)

    @contextlib.contextmanager
    def keeping(self, keeps: bool, *, later: bool = False) -> Iterator[None]:
        """Inside the block the accesses of the launch that is made are kept, if wanted. `later`: they may come behind its check."""
        accesses, before = self.accesses, self.accesses.wanted
        accesses.forget()
        accesses.wanted, accesses.later = before or keeps, later and not before
        try:
            yield
        finally:
            accesses.wanted, accesses.later = before, False

    def only_notes(self, prepared: Prepared, checked: Checked, sites: ModuleSites) -> bool:
        """Whether the findings of a launch are no more than notes."""
        return bool(checked.found) and all(each.severity == "note" for each in self._decode(checked, prepared, sites))

    def _decode(self, checked: Checked, prepared: Prepared, sites: ModuleSites) -> list[model.Finding]:
        """The findings of a launch. Most launches repeat those of an earlier one."""
        key = checked.collected.key()
        if key in self._decoded and not sites.fixes:
            return self._decoded[key]
        if len(self._decoded) >= _MOST_DECODED:
            self._decoded.clear()
        found = late.decode.decode(checked.records(), {prepared.number: sites})
        return found if sites.fixes else self._decoded.setdefault(key, found)

    def lacks_room(self, prepared: Prepared, entry: str, error: NoRoom) -> None:
        """Keep that a launch had no room for its logs. A limit of the user, or a device without memory, makes the report incomplete."""
        counts = not isinstance(error, Unasked) and (self.options.trace_memory is not None or error.__cause__)
        (self.kernels.lacks_comparison if counts else self.kernels.lacks_global_races)(prepared, entry, str(error))

    def gaps_that_count(self, prepared: Prepared, entry: str) -> tuple[str, ...]:
        """Why global memory was not checked, where that makes a report incomplete: all if all was `required`, else what had no room.

        Launches that were not recorded at all have a line of their own.
        """
        unrecorded, why = self.kernels.unrecorded(prepared, entry), self.kernels.of(prepared, entry).beyond
        gaps = [each for each in self.kernels.global_race_gaps(prepared, entry) if each not in unrecorded]
        return tuple(each for each in gaps if self.options.global_required or (why and self.options.global_wanted and why in each))

    def add_note(self, text: str) -> None:
        """Add a line to the notes of the report, once."""
        self.notes[text] = None

    def forget(self) -> None:
        """Start anew, for the next report."""
        self.kernels.forget()
        self.left.forget()
        self.pairs.forget()
        for slices in self.sliced:
            slices.restart()
        self.histories.clear()
        self.notes.clear()
        self.findings.clear()
        self.fixes = Fixes(self.fixes.off)


def _machine() -> Backend:
    """A virtual machine. Only kernels whose logs leave something out need one, and a thread makes it while the kernel is assembled."""
    return late.virtual_backend.VirtualBackend()


def _most_bytes(gpu_memory: int | None) -> int:
    """The default limit on the memory for logs. `gpu_memory`: None where memory costs nothing until it is touched."""
    return _MOST_ON_CPU if gpu_memory is None else gpu_memory // _SHARE


def describe(gpu_memory: int | None) -> tuple[str, str]:
    """For `consan doctor`: where the checker comes from, empty if there is none, and the memory for logs."""
    most = _most_bytes(gpu_memory) // (1 << 20)
    return CHECKER.origin(), f"at most {most:,} MiB for the logs of a launch (--trace-memory)"


def gaps_of(entry: str, checked: Checked, *, ended_early: bool) -> list[str]:
    """The launches and CTAs that were not checked, as sentences. `ended_early`: the report says how the launch ended."""
    gaps = checked.gaps if ended_early or not checked.unended else checked.gaps | {"did not end": checked.unended}
    return sentences(entry, gaps)


def sentences(entry: str, gaps: Mapping[str, int]) -> list[str]:
    """CTAs of a kernel that were not checked, a sentence for each reason."""
    return [f"{entry}: {plural(ctas, 'CTA')} {why}" for why, ctas in gaps.items()]


def _times(found: list[model.Finding], launches: int) -> list[model.Finding]:
    """The findings of so many launches that did the same."""
    return found if launches < 2 else [replace(each, count=launches * each.count) for each in found]


def _as_instrumented(read: Callable[[], Module], done: Recorded, waits: bool) -> Instrumented:
    """A recorded module in the form that the rest of a session uses."""
    return Instrumented(
        ptx=done.ptx,
        target=done.target,
        sites=done.sites,
        functions=done.functions,
        entries=done.entries,
        variant=Variant(),
        external=done.external,
        lines=done.lines,
        places=Places(read),
        communicates=waits,
        hazards=done.hazards,
        debug=done.debug,
    )


def begin_slice(recording: Recording, memory: LogMemory, prepared: Prepared, log: LogPlan, *, repeatable: bool) -> None:
    """A launch is to have a log. It has no slices where there is much more room by now."""
    slices = prepared.logs.slices.get(log.shape)
    if slices is not None and recording.most_bytes(memory, roomy=True) >= 2 * slices.most_bytes:
        del prepared.logs.slices[log.shape]
    elif slices is not None and repeatable:
        slices.begins()


def divide(recording: Recording, memory: LogMemory, prepared: Prepared, log: LogPlan, words: int) -> bool:
    """The logs of a launch have no room. Returns whether launches of its shape are looked at in slices from now on.

    `words`: that a thread stores at most; 0: not known.
    """
    return _divided(recording, memory, prepared, log.shape, log.divides, LogRoom(most=words))


def divide_more(recording: Recording, memory: LogMemory, prepared: Prepared, started: LaunchCheck) -> bool:
    """The log of a launch was full. Returns whether those of later launches of its shape are longer, and of fewer CTAs."""
    lines = 0 if started.memory is None else started.memory.lines
    return lines > 0 and _divided(recording, memory, prepared, started.shape, started.choice.divides, USUAL_ROOM, lines)


def _divided(
    recording: Recording, memory: LogMemory, prepared: Prepared, shape: LogShape, most_slices: int, room: LogRoom, before: int = 0
) -> bool:
    """`before`: lines that did not suffice; 0: the fewest that serve have no room.

    Not divided: launches whose CTAs may synchronise through memory, or cancel each other's launch; clusters whose CTAs are no neighbours
    in the grid; launches of several ranks, with `--sample` or `--keep-histories`, and those that are to show more than findings.
    """
    recorded, (kernel, grid, block, cluster), options = prepared.recorded, shape, recording.options
    assert recorded is not None
    form, ctas = LogForm.of(recorded, kernel), math.prod(grid)
    neighbours = cluster[1:] == (1, 1)
    if form.mode is Mode.SYNCED or form.silent or recorded.takes_clusters or not neighbours or ranks_of(prepared.plain) > 1:
        return False
    if not most_slices or options.sample or options.keep_histories or recording.asked:
        return False
    most, line = recording.most_bytes(memory, roomy=True), warps_of(1, math.prod(block)) * LINE_BYTES
    longest, least = form.needs(line, room, zeros=memory.backend.allocates_zeros).lines(most)
    if before >= longest:
        return False
    lines = _MORE * before or least
    together = max(1, cluster[0])
    shortest = before + 1 if before else least
    lines = max(shortest, min(lines, longest, most // (line * (2 * together + 1))))
    slices = Slices.fitting(ctas, together, most // (line * lines), pairs=form.mode is Mode.ALONE, most_bytes=most, most=most_slices)
    known = prepared.logs.slices.get(shape)
    if slices is None or slices.number == 1 or (known is not None and slices.count >= known.count):
        return False
    prepared.logs.slices[shape] = slices
    recording.sliced.append(slices)
    return True
