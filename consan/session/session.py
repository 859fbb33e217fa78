"""A session: all modules instrumented and launched on one device, from its creation to `report()`.

It prepares modules (executing/loading.py), launches them and watches them to their end (executing/watch.py), and turns the device's records
into one report (collecting/summary.py).

Launches in another context of the process, such as that of a second GPU, belong to a session of their own (other_contexts.py).

Not handled: kernels that exist only as machine code (listed as uninstrumented).
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from consan import late
from consan.backends.base import Dim3, Handle
from consan.backends.cost import COST
from consan.instrument.abi.variant import Variant
from consan.instrument.ptx import Module
from consan.progress import Progress
from consan.reports import model
from consan.reports.records.finding_records import ModuleSites
from consan.reports.source.variables import Argument
from consan.reports.verdict.conclusion import assemble
from consan.reports.verdict.coverage import of_reasons
from consan.reports.verdict.speaking.selection import selected
from consan.session.collecting.report_parts import ReportParts
from consan.session.collecting.summary import Summary, places
from consan.session.collecting.unknown import unknown_order
from consan.session.comparing.comparisons import Comparisons
from consan.session.comparing.driver_calls import FollowedStreams, follow
from consan.session.comparing.program_streams import CurrentPlaces, ProgramStreams
from consan.session.executing.executor import Executor, RequestedRun, base_variant
from consan.session.executing.judging import Restore
from consan.session.executing.launch_check import LaunchCheck
from consan.session.executing.loading import Modules
from consan.session.executing.recording import Recording
from consan.session.executing.watch import News, SessionWatch
from consan.session.framework_launch import FrameworkLaunch
from consan.session.frameworks import Frameworks
from consan.session.kept_launches import KeptLaunches
from consan.session.modules.device import Device, new_device, shared_device
from consan.session.modules.in_clusters import in_ctas
from consan.session.modules.layouts import AddressName, AddressNames
from consan.session.modules.prepared import Prepared
from consan.session.other_contexts import OtherContexts
from consan.session.planning.options import SessionOptions
from consan.session.planning.selection import Selection
from consan.session.without_optimisation import WithoutOptimisation

if TYPE_CHECKING:
    from consan.session.modules.shadow import Drained, Room, Shadow

DEFAULTS: Final = SessionOptions()


class Session:
    """One run that is checked. Call `report()` when the work is done.

    `cta_limit`: only so many CTAs of a launch are watched (0: all). `private`: on a device of its own, as with a `variant` of the runtime.
    `on`: the device, instead of that of the options.
    """

    def __init__(
        self,
        options: SessionOptions = DEFAULTS,
        *,
        cta_limit: int = 0,
        private: bool = False,
        variant: Variant | None = None,
        on: Device | None = None,
    ) -> None:
        self.options = options
        private = private or variant is not None
        self.device = on or (new_device if private else shared_device)(options.device, options.shadow_memory)
        self._finish = weakref.finalize(self, self.device.close) if private else None
        self.backend = self.device.backend
        self.seed = options.seed
        self.source_dir: Path | None = None  # where adapters keep copies of sources; default: a folder of the process
        self.cta_limit = cta_limit
        self.context = 0  # the number of its context among those of the program
        self.alone = True  # whether nothing runs beside a launch: no host code or other launch writes what it reads
        self.address_name: AddressName = lambda begin, end: ""  # names bytes of global memory; callers that know the buffers set it
        self._executor = Executor(self.device, options, base_variant(options, variant), cta_limit)
        self._collected = ReportParts()
        self._others = OtherContexts(self, lambda device: Session(options, cta_limit=cta_limit, on=device))
        self.unoptimised = WithoutOptimisation(self, lambda other: Session(other, on=self.device))
        self._made: list[Frameworks] = []  # if a framework launches: to follow the driver's calls would wait for a kernel that hangs

    @property
    def modules(self) -> Modules:
        """The modules that it has prepared."""
        return self._executor.modules

    @property
    def recording(self) -> Recording:
        """The results of its recorded launches."""
        return self._executor.recording

    @property
    def selection(self) -> Selection:
        """Which launches are checked."""
        return self._executor.selection

    @property
    def watch(self) -> SessionWatch:
        """How its launches have ended. Its `endings`: "timeout", "deadlock", "fault", in the order of their first."""
        return self._executor.watch

    @property
    def names(self) -> AddressNames:
        """Names of buffers in global memory, from the arguments of launches."""
        return self._executor.names

    @property
    def news(self) -> News:
        """Tells when there is something new to store."""
        return self._executor.judge.news

    @property
    def executed(self) -> int:
        """Instructions on the virtual machine, over all threads."""
        return self._executor.executed

    @property
    def progress(self) -> Progress:
        """Where progress is shown."""
        return self.modules.progress

    @property
    def shadow(self) -> Shadow:
        """The device's shadow tables, recording for this session from now on."""
        self.device.hand_to(self)
        return self.device.shadow

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Inside the block the device is this session's; then it returns to its former owner. Sessions nest."""
        before = self.device.owner
        try:
            yield
        finally:
            self.device.hand_to(before)

    def show(self, progress: Progress) -> None:
        """Show progress. Only for a command, whose device serves one session."""
        self.modules.progress = progress
        self.backend.on_ctas(progress.ctas)

    @contextlib.contextmanager
    def _own(self) -> Iterator[Modules]:
        """Inside the block the device, and the records of its shadow, belong to this session alone."""
        with COST.working(), self.device.lock:
            self.device.hand_to(self)
            yield self.modules

    def instrument(self, ptx: str | Module, *, name: str = "<ptx>", cluster: int = 1, **how: Any) -> Prepared:
        """Instrument a module, and assemble it if the device needs that. It is not loaded yet. Cached by content.

        `ptx`: text, or the module if the caller has parsed it. `cluster`: the CTAs per cluster of the launch, if the module does not
        fix them. `how`: the form, as `Modules.instrument` has it.
        """
        with self._own() as modules:
            return modules.instrument(ptx, name, cluster, **how)

    def prepare(self, ptx: str | Module, *, name: str = "<ptx>", cluster: int = 1) -> Prepared:
        """Instrument and load a module, ready for `launch`."""
        with self._own() as modules:
            return self._chained(modules.prepare(in_ctas(ptx), name, cluster))

    def instrument_for_framework(self, ptx: str, *, name: str = "<ptx>", unseen: str = "") -> Prepared:
        """A module that a framework loads and launches inside `framework_launch`. `unseen`: why its launches get no log (incomplete)."""
        with self._own() as modules:
            return self._chained(modules.for_framework(ptx, name, unseen))

    def _chained(self, prepared: Prepared) -> Prepared:
        """A module, for whose kernels launches of one stream are compared too, if they may overlap."""
        if prepared.chains and not self.alone and self.options.looks_at_global:
            (self.streams if self.backend.calls is None else self.followed).chain(self.comparisons)
        return prepared

    def plain(self, prepared: Prepared, module: Handle) -> Handle:
        """The module without hooks, for launches of a framework outside of the session. `module`: as the framework has loaded it."""
        with self.device.lock, self.backend.outside_captures():
            return self.modules.plain(prepared, module)

    @contextlib.contextmanager
    def framework_launch(self, prepared: Prepared, launch: FrameworkLaunch) -> Iterator[Handle | None]:
        """Inside the block a framework launches. Gives the module whose kernel it is to launch; None: its own."""
        if prepared.recorded is None:
            yield None
            return
        with self._own(), self.frameworks.recorded(prepared, launch) as module:
            self._executor.ever_launched = True
            with COST.outside():
                yield module

    @functools.cached_property
    def comparisons(self) -> Comparisons:
        """For the streams in which launches are made: what they compare, and where they report it."""
        recording = self.recording
        return Comparisons(recording.accesses, self.sites_of, recording.findings, self.watch.reasons, recording.kernels)

    @functools.cached_property
    def streams(self) -> ProgramStreams:
        """The streams of the program, where consan stands in for the framework."""
        return ProgramStreams(self.comparisons, self.options.looks_at_global, CurrentPlaces(self.options.gpus))

    @functools.cached_property
    def followed(self) -> FollowedStreams:
        """The streams of the program on a GPU, by the calls of its driver from now on."""
        return follow(self.comparisons, self.device, looks_at_global=self.options.looks_at_global)

    @functools.cached_property
    def frameworks(self) -> Frameworks:
        """The launches that frameworks make."""
        do = self._executor
        parts = do.modules, do.judge, do.watch, do.selection, do.background, do.names, self.followed
        self._made.append(Frameworks(self.device, *parts, self.comparisons, self.context, KeptLaunches(self)))
        return self._made[-1]

    def attach(self, prepared: Prepared, set_symbol: Callable[[str, bytes], None]) -> None:
        """Write the control block of a module that another library has loaded in the current context."""
        here = self.here()
        here.device.hand_to(here)
        here.modules.attach(prepared if here is self else here.same(prepared), set_symbol)

    def here(self) -> Session:
        """The session for launches in the current context: this one, or one that belongs to it."""
        return self._others.here()

    def same(self, prepared: Prepared) -> Prepared:
        """A module that a session like this one has prepared, for this one."""
        found = self.instrument_for_framework(prepared.plain, name=prepared.name, unseen=prepared.unseen or "")
        found.framework = prepared.framework
        return found

    def room(self, prepared: Prepared, entry: str, block: Dim3, shared: int = 0, cluster: Dim3 = (1, 1, 1)) -> Room:
        """The shadow memory that one CTA or cluster of such a launch takes."""
        with self._own() as modules:
            return modules.room(prepared, entry, block, shared, cluster)

    def launch(
        self,
        prepared: Prepared,
        entry: str,
        grid: Dim3,
        block: Dim3,
        args: Sequence[bytes],
        *,
        shared: int = 0,
        cluster: Dim3 = (1, 1, 1),
        cooperative: bool = False,
        stream: int | None = None,
        address_name: AddressName | None = None,
        restore: Restore | None = None,
    ) -> bool:
        """Launch a kernel of a prepared module, checked unless the filters leave it out. Returns whether it was.

        `address_name` names global memory by this launch's arguments; without it the session's does. `restore` gives the buffers their
        earlier contents, so that the launch can be repeated where its log cannot be judged; None: it cannot be.
        """
        how: dict[str, Any] = {"shared": shared, "cluster": cluster, "cooperative": cooperative, "stream": stream}
        asked = RequestedRun(entry, grid, block, args, how, address_name or self.address_name, restore, self.seed, self.alone)
        # Held to the end: what another thread's session launches meanwhile would be counted as this one's, or forgotten by it.
        with self._own():
            return self.unoptimised.launched(prepared, asked, self._executor.launch)

    def replayed(self, prepared: Prepared, entry: str, recording: LaunchCheck, names: AddressName) -> None:
        """Check a launch out of a file of histories, as if it had just ended."""
        with self._own():
            self._executor.replayed(prepared, entry, recording, names)

    def launched(self, prepared: Prepared, entry: str, buffers: Sequence[Argument]) -> None:
        """Name global memory by the buffers of a launch that the framework makes itself."""
        with self.device.lock:
            self.names.note_buffers(prepared, entry, buffers)

    def close(self) -> None:
        """Free the shadow of a session with its own device. Afterwards the session is read-only."""
        if self._finish is not None:
            self._finish()

    @property
    def device_lost(self) -> bool:
        """Whether the device's context is lost: nothing can be read back or freed."""
        return self.device.lost

    @property
    def record_lost(self) -> bool:
        """Whether a fault of a recorded kernel has taken the device and the record."""
        return self._executor.judge.lost

    def uninstrumented(self, name: str, launches: int = 1) -> None:
        """List a kernel that runs without instrumentation."""
        listed = self._collected.uninstrumented
        listed[name] = listed.get(name, 0) + launches

    def note(self, text: str) -> None:
        """Add a line to the report's notes, once."""
        self._collected.notes[text] = None

    def report(self) -> model.Report:
        """Wait for the device, read the tables, and compute the verdict."""
        with COST.working():
            return self._united(self._whole(), Session.report)

    def _whole(self) -> model.Report:
        """The report, with what the virtual machine shows of launches that were kept."""
        return functools.reduce(lambda report, each: each.kept.added(report), self._made, self._report(*self._collect()))

    def so_far(self, *, counts_all: bool = True) -> model.Report:
        """The report of what is known now, without a wait for the device. `counts_all`: launches that repeat, too, which C counts."""
        list(map(Frameworks.tell_repeated, self._made if counts_all else ()))
        known = self.device.owner is self and self._read_back(lost=self.device.lost or not self.backend.survives_fork)
        return self._united(self._report(*(known or (self._collected.found, self._collected.drained))), Session.so_far)

    def _united(self, own: model.Report, of: Callable[[Session], model.Report]) -> model.Report:
        return self._others.united(own, of) or own

    def _report(self, found: list[model.Finding], drained: Drained | None) -> model.Report:
        counters, global_races = drained.counters if drained else None, self.options.looks_at_global
        summary = Summary(self.modules.used.values(), self.selection, drained, self.recording, global_races)
        of_records = self.recording.findings, self.watch.findings
        findings, left_out = selected(found, *of_records, summary.static(), unknown_order(summary.used))
        reasons = dict.fromkeys([*self._executor.judge.reasons, *summary.unseen()])
        unsettled = next(iter(reasons), "") or ("not all CTAs were checked" if self.cta_limit else "")
        kernels = summary.with_schedules(summary.kernels(), self._executor.schedules, findings, unsettled)
        report = assemble(
            device=self.backend.device_name,
            kernels=kernels,
            findings=findings,
            checked=summary.checked(),
            uninstrumented=summary.listed(self._collected.uninstrumented),
            dropped=counters.dropped_findings if counters else 0,
            evicted=counters.evicted if counters else 0,
            covered=[*of_reasons(reasons), *summary.gaps(), *of_reasons(left_out)],
            why_nothing=summary.why_nothing(self._executor.ever_launched),
            notes=tuple({**self._collected.notes, **self.recording.notes, **self.modules.notes()}),
            seed=self.seed,
            policy=self.options.policy,
        )
        keeper = self._executor.keeper
        return self.unoptimised.added(report if keeper is None else keeper.written(report))

    def places(self, report: model.Report) -> set[tuple[str, int]]:
        """Source lines that were watched."""
        return places((each for session in self._others.all for each in session.modules.used.values()), report)

    def harvest(self) -> None:
        """Store what the device has recorded for this session, before another session uses the tables."""
        self._collected.found, self._collected.drained = self._collect()

    def _collect(self) -> tuple[list[model.Finding], Drained | None]:
        """Stored records, and the tables if they record for this session. Waits for the device."""
        with self.device.lock:
            for frameworks in self._made:
                frameworks.settle()
            if self.device.owner is not self:
                return self._collected.found, self._collected.drained
            if not self.device.lost:
                self.watch.synchronize()
            return self._read_back(lost=self.device.lost)

    def _read_back(self, *, lost: bool) -> tuple[list[model.Finding], Drained | None]:
        """Stored records, and those of the tables."""
        if not self.device.has_hooks:
            return self._collected.found, self._collected.drained
        drained = self.device.shadow.drain(lost=lost)
        found = late.decode.decode(drained.found, {p.number: self.sites_of(p) for p in self.modules.used.values()})
        return self._collected.with_more(found, drained)

    def sites_of(self, prepared: Prepared) -> ModuleSites:
        """The module's sites for the report. The text is parsed only if there is something to report."""
        return self._executor.sites_of(prepared)

    def take(self) -> model.Report | None:
        """The report since the last `take`, and a fresh start. None if nothing was launched, and nothing else went wrong."""
        return self._others.united(self._take(), Session.take)

    def _take(self) -> model.Report | None:
        list(map(Frameworks.tell_repeated, self._made))
        if not (self.modules.used or self._collected.uninstrumented or self.watch.reasons):
            return None
        report, cut_off = self._whole(), bool(self.watch.reasons)
        ran = tuple(kernel for kernel in report.kernels if kernel.launches)
        self._executor.ever_launched |= bool(ran)
        self._executor.forget()
        self._collected.forget()
        self.unoptimised.forget()
        list(map(Frameworks.forget, self._made))
        if self.device.owner is self and not self.device.lost:
            self.device.start(self.cta_limit)
        return replace(report, kernels=ran) if ran or report.uninstrumented or cut_off else None
