"""Recorded launches of a session: started, judged once they have ended, and repeated with longer logs where only room was missing.

Facts that a log lacks (after a fault, a hang without a proof, a full log, replays that take too long) make the report incomplete, and
so does a launch that cannot be recorded: it runs as it is.
"""

from __future__ import annotations

import contextlib
import functools
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from consan import late
from consan._errors import NotSupported
from consan.backends.base import Handle
from consan.checker.judging.checked import Checked
from consan.checker.logs.log_lines import SMALL_BYTES
from consan.checker.logs.pieces import NoRoom
from consan.checker.logs.retained import Watched
from consan.checker.logs.shares import Slices
from consan.dataclass import dataclass
from consan.ranges import LaunchExtents
from consan.reports.model import AllLaunchesProof, Finding, VerifiedFix
from consan.reports.positions import unfinished
from consan.reports.records.finding_records import ModuleSites
from consan.session.executing.hangs import hang
from consan.session.executing.histories import Keeper
from consan.session.executing.launch_check import LaunchCheck
from consan.session.executing.loading import Modules
from consan.session.executing.recording import (
    LONGEST_REPEATED,
    SLOW,
    WITH_HOOKS,
    Recording,
    begin_slice,
    divide,
    divide_more,
    gaps_of,
    sentences,
)
from consan.session.executing.watch import News, SessionWatch
from consan.session.modules.device import Device
from consan.session.modules.prepared import Prepared
from consan.session.planning.decided import may_be_stopped
from consan.session.planning.launch_sizes import warps_of
from consan.session.planning.log_bounds import LogBounds
from consan.session.planning.plan import NOTHING_KNOWN, Gap, LaunchPlan, PlannedKernel, PlannedLaunch, plan
from consan.session.planning.proofs import LaunchBytes, Proofs

if TYPE_CHECKING:
    from consan.session.planning.launch_proofs import LaunchProofs, ProvedLaunch

Restore = Callable[[], None]
FORETOLD = 1 << 11  # warps of a launch from which its bytes are taken from the text, not from a log


@dataclass(frozen=True)
class Examined:
    """The findings of a launch, and their fixes by the number of the finding."""

    checked: Checked
    fixes: Mapping[int, VerifiedFix]
    hang: Finding | None = None  # a deadlock of threads that poll memory


@dataclass
class Judge:
    """Starts and judges a session's recorded launches."""

    device: Device
    modules: Modules
    recording: Recording
    watch: SessionWatch
    keeper: Keeper | None
    sites_of: Callable[[Prepared], ModuleSites]
    cta_limit: int
    lost: bool = False  # a fault has taken the device and the log
    proofs: Proofs = field(default_factory=Proofs)
    bounds: LogBounds = field(default_factory=LogBounds)
    always: LaunchProofs | None = None  # for all launches of a kernel; None: none is wanted
    settle: Callable[[], None] = lambda: None  # wait for the launches beside which the program goes on
    _checking: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.news = News(self.device, self.recording, self.watch)
        recording = self.recording
        self._tells: dict[Gap, Callable[[Prepared, str, Any], None]] = {
            Gap.GLOBAL: recording.kernels.lacks_global_races,
            Gap.ROOM: recording.lacks_room,
            Gap.RECORD: recording.kernels.lacks_record,
        }

    @property
    def reasons(self) -> list[str]:
        """Why the run is incomplete, as far as launches are judged."""
        left = self.recording.left.by_reason()
        return [*self.watch.reasons, *(reason for entry, gaps in left.items() for reason in sentences(entry, gaps))]

    def _unlist(self, prepared: Prepared) -> None:
        """Leave a form without judged launches out of the report, which lists the form that is judged."""
        if not any(self.recording.kernels.tally(prepared, name).launches for name in prepared.entries):
            self.modules.used.pop(prepared.number, None)

    def looked(self, prepared: Prepared, entry: str) -> None:
        """A launch of a framework took the form with global memory instead of the framework's own."""
        self.recording.kernels.of(prepared, entry).looked += 1
        self._unlist(prepared)

    def start(
        self, prepared: Prepared, entry: str, launch: PlannedLaunch, restore: Restore | None, args: Sequence[bytes] = (),
        *, background: bool = False,
    ) -> tuple[Prepared, LaunchCheck | None]:  # fmt: skip
        """Make the memory of a recorded launch, as it is planned. Without a log it has the recorded form of its module, and no memory.

        `args`: the parameters, if they are known. `background`: the program goes on meanwhile. Otherwise nothing else runs: the launch has
        the module's variables for itself.
        """
        if prepared.recorded is None:
            return prepared, None
        kernels = self.recording.kernels
        judged = kernels.shapes.has(prepared.plain, entry, launch.grid, launch.block)
        accesses, foretold = self.recording.accesses, functools.partial(self._foretold, prepared, entry, launch, args)
        found = foretold(FORETOLD)
        accesses.touched = found if found is not None and found.certain else None
        wanted = replace(launch, wanted=accesses.logged or self.recording.asked, judged=judged)
        kernel = self._kernel(prepared, entry, launch, args)
        made, started = self._started(kernel, wanted, foretold, background=background, repeatable=restore is not None)
        for gap, form, why in made.gaps:
            self._tells[gap](form, entry, why)
        if made.form is not prepared and made.proven != NOTHING_KNOWN:
            self._unlist(prepared)
        if started is None:
            if made.proven.always is not None:
                kernels.counts_always(made.form, entry, made.proven.always, launch.grid, launch.block, recorded=False)
            return made.form, None
        started.restore, started.proven = restore, made.proven
        if made.proven.always is not None:
            self.keep_shown(prepared, entry, LaunchExtents(launch.grid, launch.block), args)
        if not background:
            started.timeout = self.watch.timeout
        if self.keeper is not None:
            started.launch, started.earlier = Watched(started.launch), None  # the file needs each history's log
        return made.form, started

    def _kernel(self, prepared: Prepared, entry: str, launch: PlannedLaunch, args: Sequence[bytes]) -> PlannedKernel[Prepared]:
        light = functools.partial(self.modules.without_global_races, prepared)
        if not args:
            return PlannedKernel(prepared, entry, light)
        extents = LaunchExtents(launch.grid, launch.block)
        proven = functools.partial(self.proofs.accesses, prepared, entry, args, extents)
        always = functools.partial(self.proof_of, prepared, entry, extents, args)
        return PlannedKernel(prepared, entry, light, proven, always, functools.partial(self.is_shown, prepared, entry, extents, args))

    def _foretold(self, prepared: Prepared, entry: str, launch: PlannedLaunch, args: Sequence[bytes], least: int) -> LaunchBytes | None:
        """The bytes that a launch of so many warps at least touches, if they are to be compared. A log says of each thread what it did.

        None: its text and its parameters do not determine them.
        """
        accesses, warps = self.recording.accesses, warps_of(math.prod(launch.grid), math.prod(launch.block))
        if not (accesses.wanted and accesses.by_address and args) or accesses.peers or launch.first or warps < least:
            return None
        return self.proofs.touched(prepared, entry, args, LaunchExtents(launch.grid, launch.block))

    def may_stop(self, prepared: Prepared, entry: str, *, decided: bool = False) -> bool:
        """Whether a launch needs a log, so that it can be stopped. `decided`: one with the bytes that decide what it does has ended."""
        return may_be_stopped(prepared.recorded, entry, self.recording.options, decided=decided)

    def proof_of(self, prepared: Prepared, entry: str, extents: LaunchExtents, args: Sequence[bytes]) -> AllLaunchesProof | None:
        """The proof that no launch of a kernel has a race, if it covers a launch."""
        return None if self.always is None else self.always.of(prepared, self._proved(prepared, entry, extents, args))

    def is_shown(self, prepared: Prepared, entry: str, extents: LaunchExtents, args: Sequence[bytes]) -> bool:
        """Whether a recorded launch has shown what a proven one does that is no race."""
        return self.always is not None and self.recording.kernels.shows(
            self.always.like(prepared, self._proved(prepared, entry, extents, args))
        )

    def keep_shown(self, prepared: Prepared, entry: str, extents: LaunchExtents, args: Sequence[bytes]) -> None:
        """A launch is recorded: it shows what others like it do that is no race."""
        if self.always is not None:
            self.recording.kernels.keep_shown(self.always.like(prepared, self._proved(prepared, entry, extents, args)))

    def proof_of_shown(self, prepared: Prepared, entry: str, extents: LaunchExtents, args: Sequence[bytes]) -> AllLaunchesProof | None:
        """The proof, if a recorded launch has shown the rest, too."""
        return self.proof_of(prepared, entry, extents, args) if self.is_shown(prepared, entry, extents, args) else None

    def _proved(self, prepared: Prepared, entry: str, extents: LaunchExtents, args: Sequence[bytes]) -> ProvedLaunch:
        touched = functools.partial(self.proofs.touched, prepared, entry, args, extents)
        return late.launch_proofs.ProvedLaunch(entry, extents.grid, extents.block, args, touched)

    def _started(
        self, kernel: PlannedKernel[Prepared], launch: PlannedLaunch, foretold: Callable[[int], LaunchBytes | None],
        *, background: bool, repeatable: bool,
    ) -> tuple[LaunchPlan[Prepared], LaunchCheck | None]:  # fmt: skip
        """LaunchPlan, and make the log. If it has no room the launch is planned again: with more memory for logs, then without this log.

        A log that is there for a comparison alone is not made bigger. `foretold`: the bytes that the launch may touch serve, too.
        """
        while True:
            made = plan(kernel, launch, self.recording.options)
            form = made.form
            if made.log is None or form.recorded is None:
                return made, None
            if not (background or form.recorded.kernel(kernel.entry).silent):
                self.settle()
            begin_slice(self.recording, self.device.logs, form, made.log, repeatable=repeatable)
            most = self.bounds.of(form, made.log.shape, launch.asked)
            try:
                return made, self.recording.start(self.device.logs, form, made.log, most, background=background)
            except NoRoom as error:
                if launch.wanted and not self.recording.asked and kernel.proven() and (found := foretold(0)) is not None:
                    self.recording.accesses.touched, launch = found, replace(launch, wanted=False)
                elif not (error.__cause__ or form.logs.roomy):
                    form.logs.roomy = True
                elif error.__cause__ or not divide(self.recording, self.device.logs, form, made.log, most):
                    launch = replace(launch, no_room={**launch.no_room, form.number: error})

    @contextlib.contextmanager
    def judged(self, prepared: Prepared, entry: str, started: LaunchCheck | None, handle: Handle | None) -> Iterator[None]:
        """Check what a launch has recorded, and free the memory of its logs."""
        taken = started if handle is prepared.loaded else None
        self.watch.recorded = taken
        try:
            yield
        except (KeyboardInterrupt, NotSupported) as error:
            if taken is not None:  # the log up to that point; the report says how the launch ended
                taken.ending.early, taken.restore = True, None
                taken.patience.interrupted = isinstance(error, KeyboardInterrupt)
                with contextlib.suppress(KeyboardInterrupt):
                    self.check(prepared, entry, taken)
            raise
        else:
            if taken is not None:
                self.check(prepared, entry, taken)
        finally:
            self.watch.recorded = None
            if started is not None and not self.device.lost:
                started.free()

    def check(self, prepared: Prepared, entry: str, started: LaunchCheck) -> None:
        """Judge a launch, unless it is to be repeated."""
        hangs = started.memory is not None and started.memory.hangs
        if not (hangs or started.silent):
            self.watch.synchronize()
        if self.device.lost and not hangs:
            self.loses(entry)
            return
        examined = self.examined(prepared, entry, started)
        if not started.repeats:
            accesses = self.recording.accesses
            checked = examined.checked
            accesses.last, accesses.alike, accesses.plain = checked.retained, checked.alike, not checked.found
            self.concluded(prepared, entry, started, examined)
        if started.patience.interrupted:
            raise KeyboardInterrupt

    def loses(self, entry: str) -> None:
        """Tell that a launch has left no log."""
        self.lost = True
        self.watch.reasons[f"{entry} left no log; --engine inline keeps what it found up to the fault"] = None

    def examined(self, prepared: Prepared, entry: str, started: LaunchCheck) -> Examined:
        """Check what a launch has left, and choose how later ones of its kernel are made. One thread at a time does so.

        A launch that records nothing leaves nothing, so it waits for no other one.
        """
        with contextlib.nullcontext() if started.silent else self._checking:
            began = time.monotonic()
            checked = started.check(limit=self.cta_limit)
            if started.patience.interrupted:
                return Examined(checked, {}, None)
            if started.earlier is not None:
                started.earlier.store()
            self._sizes(prepared, started, checked)
            if started.is_full(checked) and not started.may_be_longer:
                self._divides(prepared, started, checked)
            if started.recorded.leaves and time.monotonic() - began > SLOW:
                prepared.logs.slow = True
            if not checked.unended:  # it has ended after all
                started.ending.stopped = ""
            halted = started.ending.stopped and not self.device.lost
            deadlock = hang(started, checked, prepared, entry, self.device.backend) if halted else None
            checked = replace(checked, deadlocked=checked.deadlocked or deadlock is not None)
            started.repeats = self._repeats(prepared, started, checked)
            return Examined(checked, {} if started.repeats else self._fixes(prepared, started, checked), deadlock)

    def _sizes(self, prepared: Prepared, started: LaunchCheck, checked: Checked) -> None:
        """Later launches of a shape with long logs have as much room as this one has used, and some more."""
        memory = started.memory
        if memory is None or memory.log_bytes <= SMALL_BYTES or started.ending.stopped or self.device.lost or started.needs_room(checked):
            return
        prepared.logs.used(started.shape, memory.used_lines())

    def _divides(self, prepared: Prepared, started: LaunchCheck, checked: Checked) -> None:
        """The log was full, and cannot be longer: later launches of the shape have logs of fewer CTAs."""
        if divide_more(self.recording, self.device.logs, prepared, started):
            self.recording.histories.clear()  # those of full logs have the names of the whole ones
            checked.gaps.clear()
            checked.global_races = ()
            checked.pairs = prepared.logs.slices[started.shape]

    def _fixes(self, prepared: Prepared, started: LaunchCheck, checked: Checked) -> Mapping[int, VerifiedFix]:
        """The repairs that were verified. Ctrl-C ends the search, and keeps what was found."""
        try:
            return self.recording.fixes_of(prepared, started, checked, self.sites_of(prepared))
        except KeyboardInterrupt:
            started.patience.interrupted = True
            return {}

    def concluded(self, prepared: Prepared, entry: str, started: LaunchCheck, examined: Examined) -> bool:
        """Keep what was found in a launch. Returns whether that is no more than notes."""
        checked, sites = examined.checked, self.sites_of(prepared)
        self.modules.used[prepared.number] = prepared  # again, if another form took a launch while this one was made
        if self.keeper is not None:
            self.keeper.add(prepared, entry, started)
        self.watch.findings.add(filter(None, (examined.hang,)))
        self.recording.note(prepared, entry, started, checked, replace(sites, fixes=examined.fixes))
        if started.ending.stopped:
            self._stopped(prepared, entry, started, checked)
        self.watch.reasons |= dict.fromkeys(gaps_of(entry, checked, ended_early=started.ending.reported))
        self.news.tell()
        return self.recording.only_notes(prepared, checked, sites)

    def repeated(self, prepared: Prepared, entry: str, started: LaunchCheck, checked: Checked, times: int) -> None:
        """Count launches that did what a launch did that is concluded."""
        self.recording.note(prepared, entry, started, checked.again(times), self.sites_of(prepared))
        self.news.tell()

    def _stopped(self, prepared: Prepared, entry: str, started: LaunchCheck, checked: Checked) -> None:
        """Tell how a launch ended that the host has stopped."""
        self.watch.endings["deadlock" if checked.deadlocked else "timeout"] = None
        if not checked.deadlocked:
            where = started.positions(checked, prepared, entry)
            threads = math.prod(started.launched.grid) * math.prod(started.launched.block)
            self.watch.reasons[unfinished(entry, f"{started.ending.stopped}; {WITH_HOOKS}", where, 0, threads)] = None

    def _repeats(self, prepared: Prepared, started: LaunchCheck, checked: Checked) -> bool:
        """Whether the launch is repeated, because its logs were full. Later ones have longer logs at once."""
        if checked.slices is not None:
            return self._has_other_slices(started, checked, checked.slices)
        if not (started.needs_room(checked) and prepared.logs.full(started.shape)):
            return False
        self.recording.histories.clear()  # those of full logs have the names of the whole ones
        if started.restore is None or self.device.lost:
            return False
        self._unlist(prepared)
        started.restore()
        return True

    def _has_other_slices(self, started: LaunchCheck, checked: Checked, slices: Slices) -> bool:
        """Whether a launch is repeated, because other CTAs had no log. One with other gaps is not: they would be lost."""
        gaps = checked.gaps or checked.left or checked.global_races or started.ending.reported or self.device.lost
        if started.restore is None or gaps or not slices.left or slices.seconds > LONGEST_REPEATED:
            slices.retained = None
            return False
        slices.repeats = True
        started.restore()
        return True
