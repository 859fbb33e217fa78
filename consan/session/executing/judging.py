"""Recorded launches of a session: started, judged once they have ended, and repeated with longer logs where only room was missing.

What a record does not tell (after a fault, a hang without a proof, a full log, replays that take too long) makes the report incomplete, and
so does a launch that cannot be recorded: it runs as it is.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from consan._errors import NotSupported
from consan.backends.base import Dim3, Handle
from consan.checker.kept import Watched
from consan.checker.launch import NoRoom
from consan.checker.recorder import Checked
from consan.ranges import LaunchExtents
from consan.reports.found import ModuleSites
from consan.reports.model import Finding, VerifiedFix
from consan.reports.positions import unfinished
from consan.session.executing.hangs import hang
from consan.session.executing.histories import Keeper
from consan.session.executing.loading import Modules
from consan.session.executing.news import News
from consan.session.executing.recording import SLOW, WITH_HOOKS, Recording, Unasked, gaps_of
from consan.session.executing.started import Started
from consan.session.executing.watch import SessionWatch
from consan.session.modules.device import Device
from consan.session.modules.prepared import Prepared
from consan.session.planning.proofs import Proofs

Restore = Callable[[], None]


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
    lost: bool = False  # a fault has taken the device and the record
    proofs: Proofs = field(default_factory=Proofs)
    settle: Callable[[], None] = lambda: None  # wait for the launches beside which the program goes on
    _checking: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.news = News(self.device, self.recording, self.watch)

    def pruned(self, prepared: Prepared, entry: str, grid: Dim3, block: Dim3, args: Sequence[bytes]) -> tuple[Prepared, int]:
        """The form of a module for a launch: without global memory, if all accesses to it are proven apart. And how many are."""
        if not args or prepared.recorded is None or not prepared.recorded.prunes:
            return prepared, 0
        polls = prepared.recorded.leaves and entry in prepared.recorded.polls  # if it hangs, its record names what it polls
        if polls or self.recording.keeps or self.recording.asked:  # its accesses are wanted
            return prepared, 0
        accesses = self.proofs.accesses(prepared, entry, args, LaunchExtents(grid, block))
        if not accesses:
            return prepared, 0
        light = self.modules.without_outer(prepared)
        if light.recorded is None or entry in light.recorded.refused or light.recorded.has_global(entry):
            return prepared, 0
        self._unlist(prepared)
        return light, accesses

    def _unlist(self, prepared: Prepared) -> None:
        """Leave a form without judged launches out of the report, which lists the form that is judged."""
        if not any(self.recording.tally(prepared, name).launches for name in prepared.entries):
            self.modules.used.pop(prepared.number, None)

    def looked(self, prepared: Prepared, entry: str) -> None:
        """A launch of a framework took the form with global memory instead of the framework's own."""
        self.recording.counts_looked(prepared, entry)
        self._unlist(prepared)

    def start(
        self,
        prepared: Prepared,
        entry: str,
        grid: Dim3,
        block: Dim3,
        cluster: Dim3,
        restore: Restore | None,
        stream: int | None = None,
        args: Sequence[bytes] = (),
        *,
        beside: bool = False,
    ) -> tuple[Prepared, Started | None]:
        """Make the memory of a recorded launch. One that the trace memory cannot hold is recorded without global memory, or not at all:
        then it has the recorded form of its module, and no memory.

        Nodes of a graph take hooks: they run whenever the program starts the graph, and a log serves one launch. `args`: the parameters,
        if they are known. `beside`: the program is to go on beside it. Otherwise nothing else runs: the launch has the module's variables
        for itself.
        """
        if prepared.recorded is None:
            return prepared, None
        if refused := prepared.recorded.refused.get(entry, ""):
            return self._start_refused(prepared, entry, (grid, block, cluster), restore, stream, refused)
        if self.device.backend.capturing(stream):
            self.recording.takes_hooks(prepared.name, "a launch into a graph")
            return self._with_hooks(prepared, cluster), None
        prepared, proven = self.pruned(prepared, entry, grid, block, args)
        assert prepared.recorded is not None
        if not (beside or entry in prepared.recorded.silent):
            self.settle()
        try:
            started = self.recording.start(self.device.logs, prepared, entry, grid, block, cluster, beside=beside)
        except NoRoom as error:
            return self._start_without_room(prepared, entry, (grid, block, cluster), restore, stream, error)
        started.restore, started.proven = restore, proven
        if not beside:
            started.timeout = self.watch.timeout
        if self.keeper is not None and not prepared.recorded.has_global(entry):
            started.launch, started.earlier = Watched(started.launch), None  # the file needs each history's log
        return prepared, started

    def _start_without_room(
        self, prepared: Prepared, entry: str, shape: tuple[Dim3, Dim3, Dim3], restore: Restore | None, stream: int | None, error: NoRoom
    ) -> tuple[Prepared, Started | None]:
        """Start a launch whose log has no room: with more memory, without global memory, or unrecorded."""
        recorded = prepared.recorded
        assert recorded is not None
        if not (isinstance(error, Unasked) or error.__cause__ or prepared.roomy):
            prepared.roomy = True
            return self.start(prepared, entry, *shape, restore, stream)
        if recorded.has_global(entry):
            light = self.modules.without_outer(prepared)
            if light.recorded is not None and not light.recorded.has_global(entry):
                self.recording.lacks_room(light, entry, error)
                return self.start(light, entry, *shape, restore, stream)
        self.recording.lacks_room(prepared, entry, error)
        self.recording.lacks_record(prepared, entry, str(error))
        return prepared, None

    def _start_refused(
        self, prepared: Prepared, entry: str, shape: tuple[Dim3, Dim3, Dim3], restore: Restore | None, stream: int | None, why: str
    ) -> tuple[Prepared, Started | None]:
        """Start a kernel that this form does not record: with the form without global memory, or unrecorded."""
        assert prepared.recorded is not None
        light = self.modules.without_outer(prepared) if prepared.recorded.has_global(entry) else prepared
        if light.recorded is None or entry in light.recorded.refused:
            self.recording.lacks_record(light, entry, why)
            return light, None
        self.recording.lacks_outer(light, entry, why)
        return self.start(light, entry, *shape, restore, stream)

    def _with_hooks(self, prepared: Prepared, cluster: Dim3) -> Prepared:
        with self.device.backend.apart_from_captures():
            return self.modules.with_hooks(prepared, math.prod(cluster))

    @contextlib.contextmanager
    def judged(self, prepared: Prepared, entry: str, started: Started | None, handle: Handle | None) -> Iterator[None]:
        """Check what a launch has recorded, and free the memory of its logs."""
        taken = started if handle is prepared.loaded else None
        self.watch.recorded = taken
        try:
            yield
        except (KeyboardInterrupt, NotSupported) as error:
            if taken is not None:  # what it did so far; the report tells how it ended
                taken.ended_early, taken.restore = True, None
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

    def check(self, prepared: Prepared, entry: str, started: Started) -> None:
        """Judge a launch, unless it is to be repeated."""
        hangs = started.memory is not None and started.memory.hangs
        if not (hangs or started.silent):
            self.watch.synchronize()
        if self.device.lost and not hangs:
            self.loses(entry)
            return
        examined = self.examined(prepared, entry, started)
        if not started.repeats:
            self.concluded(prepared, entry, started, examined)
        if started.patience.interrupted:
            raise KeyboardInterrupt

    def loses(self, entry: str) -> None:
        """Tell that a launch has left no record."""
        self.lost = True
        self.watch.reasons[f"{entry} left no record; --engine inline keeps what it found up to the fault"] = None

    def examined(self, prepared: Prepared, entry: str, started: Started) -> Examined:
        """Check what a launch has left, and choose how later ones of its kernel are made. One thread at a time does so."""
        with self._checking:
            began = time.monotonic()
            checked = started.check(limit=self.cta_limit)
            if started.patience.interrupted:
                return Examined(checked, {}, None)
            if started.earlier is not None:
                started.earlier.store()
            if started.recorded.leaves and time.monotonic() - began > SLOW:
                prepared.slow = True
            if not checked.unended:  # it has ended after all
                started.stopped = ""
            deadlock = hang(started, checked, prepared, entry, self.device.backend) if started.stopped and not self.device.lost else None
            checked = replace(checked, deadlocked=checked.deadlocked or deadlock is not None)
            started.repeats = self._repeats(prepared, started, checked)
            return Examined(checked, {} if started.repeats else self._fixes(prepared, started, checked), deadlock)

    def _fixes(self, prepared: Prepared, started: Started, checked: Checked) -> Mapping[int, VerifiedFix]:
        """The repairs that were verified. Ctrl-C ends the search, and keeps what was found."""
        try:
            return self.recording.fixes_of(prepared, started, checked, self.sites_of(prepared))
        except KeyboardInterrupt:
            started.patience.interrupted = True
            return {}

    def concluded(self, prepared: Prepared, entry: str, started: Started, examined: Examined) -> None:
        """Keep what was found in a launch."""
        checked = examined.checked
        if self.keeper is not None:
            self.keeper.add(prepared, entry, started)
        self.watch.findings.add(filter(None, (examined.hang,)))
        self.recording.note(prepared, entry, started, checked, replace(self.sites_of(prepared), fixes=examined.fixes))
        if started.stopped:
            self._stopped(prepared, entry, started, checked)
        self.watch.reasons |= dict.fromkeys(gaps_of(entry, checked, ended_early=started.ended_early or bool(started.stopped)))
        self.news.tell()

    def _stopped(self, prepared: Prepared, entry: str, started: Started, checked: Checked) -> None:
        """Tell how a launch ended that the host has stopped."""
        self.watch.endings["deadlock" if checked.deadlocked else "timeout"] = None
        if not checked.deadlocked:
            where = started.stands(checked, prepared, entry)
            threads = math.prod(started.launched.grid) * math.prod(started.launched.block)
            self.watch.reasons[unfinished(entry, f"{started.stopped}; {WITH_HOOKS}", where, 0, threads)] = None

    def _repeats(self, prepared: Prepared, started: Started, checked: Checked) -> bool:
        """Whether the launch is repeated, because its logs were full. Later ones have longer logs at once."""
        if prepared.roomy or not started.needs_room(checked):
            return False
        prepared.roomy = True
        self.recording.histories.clear()  # those of full logs have the names of the whole ones
        if started.restore is None or self.device.lost:
            return False
        self._unlist(prepared)
        started.restore()
        return True
