"""A session: all modules instrumented and launched on one device, from its creation to `report()`.

It prepares modules (executing/loading.py), launches them and watches them to their end (executing/watch.py), and turns the device's records
into one report (collecting/summary.py).

Not handled: several devices, and kernels that exist only as machine code (listed as uninstrumented).
"""

from __future__ import annotations

import contextlib
import functools
import math
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from consan.backends.base import Dim3, Handle
from consan.instrument.abi.variant import Variant
from consan.instrument.between import TextRelations
from consan.instrument.ptx import Module
from consan.progress import SILENT, Progress
from consan.reports import model
from consan.reports.decode import decode
from consan.reports.found import ModuleSites
from consan.reports.variables import Argument
from consan.reports.verdict.conclusion import assemble
from consan.reports.verdict.coverage import of_reasons
from consan.reports.verdict.selection import selected
from consan.session.collecting.summary import Summary, places
from consan.session.collecting.unknown import unknown_order
from consan.session.comparing.driver_calls import FollowedStreams, follow
from consan.session.comparing.program_streams import ProgramStreams
from consan.session.executing.beside_program import BesideProgram
from consan.session.executing.histories import Keeper
from consan.session.executing.judging import Judge, Restore
from consan.session.executing.loading import Modules
from consan.session.executing.recording import Recording
from consan.session.executing.started import Started
from consan.session.executing.watch import SessionWatch
from consan.session.frameworks import FrameworkLaunch, Frameworks
from consan.session.modules.device import Device, new_device, shared_device
from consan.session.modules.in_clusters import in_ctas
from consan.session.modules.layouts import AddressName, AddressNames, NamedBuffers
from consan.session.modules.prepared import Prepared
from consan.session.planning.launch_sizes import check_residency
from consan.session.planning.options import SessionOptions
from consan.session.planning.plan import PlannedLaunch
from consan.session.planning.selection import Selection

if TYPE_CHECKING:
    from consan.session.modules.shadow import Drained, Room, Shadow

DEFAULTS: Final = SessionOptions()


class Session:
    """One run that is checked. Call `report()` when the work is done.

    `cta_limit`: only so many CTAs of a launch are watched (0: all). `private`: on a device of its own, as with a `variant` of the runtime.
    `on`: the device, instead of that of the options.
    """

    executed = 0  # instructions on the virtual machine, over all threads

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
        self.progress = SILENT
        self.cta_limit = cta_limit
        base = replace(variant or Variant(), isa=options.isa or (variant is not None and variant.isa))
        self.recording = Recording(options)
        self._keeper = Keeper(self.device, self.recording) if options.keep_histories else None
        self.modules = Modules(self.device, base, self.recording, fast=options.assembly == "fast")
        self.selection = Selection(options.filter)
        self.alone = True  # whether nothing runs beside a launch: no host code or other launch writes what it reads
        self.watch = SessionWatch(self.device, options.timeout, self.modules.used)
        self.endings = self.watch.endings  # how launches ended early: "timeout", "deadlock", "fault", in the order of their first
        self.address_name: AddressName = lambda begin, end: ""  # names bytes of global memory; callers that know the buffers set it
        self.names = AddressNames()  # of global memory, as launches have told their buffers
        self._ever_launched = False  # `take` does not reset it
        self._judge = Judge(self.device, self.modules, self.recording, self.watch, self._keeper, self.sites_of, cta_limit)
        self.news = self._judge.news
        self._beside = BesideProgram(self.device, self._judge, self.watch)
        self._made: list[Frameworks] = []  # if a framework launches: to follow the driver's calls would wait for a kernel that hangs
        self._uninstrumented: dict[str, int] = {}
        self._notes: dict[str, None] = {}
        self._found: list[model.Finding] = []
        self._drained: Drained | None = None

    @property
    def policy(self) -> str:
        """How strictly the ISA is read."""
        return self.options.policy

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
        self.progress = self.modules.progress = progress
        self.backend.on_ctas(progress.ctas)

    # -- modules ---------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _own(self) -> Iterator[Modules]:
        """Inside the block the device, and the records of its shadow, belong to this session alone."""
        with self.device.lock:
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
            return modules.prepare(in_ctas(ptx), name, cluster)

    def instrument_for_framework(self, ptx: str, *, name: str = "<ptx>") -> Prepared:
        """A module that a framework loads and launches inside `framework_launch`: recorded where the session records."""
        with self._own() as modules:
            return modules.for_framework(ptx, name)

    def plain(self, prepared: Prepared, module: Handle) -> Handle:
        """The module without hooks, for launches of a framework outside of the session. `module`: as the framework has loaded it."""
        with self.device.lock, self.backend.apart_from_captures():
            return self.modules.plain(prepared, module)

    @contextlib.contextmanager
    def framework_launch(self, prepared: Prepared, launch: FrameworkLaunch) -> Iterator[Handle | None]:
        """Inside the block a framework launches. Gives the module whose kernel it is to launch; None: its own."""
        if prepared.recorded is None:
            yield None
            return
        with self._own(), self._frameworks.recorded(prepared, launch) as module:
            self._ever_launched = True
            yield module

    @functools.cached_property
    def streams(self) -> ProgramStreams:
        """The streams of the program, where consan stands in for the framework."""
        return ProgramStreams(self)

    @functools.cached_property
    def followed(self) -> FollowedStreams:
        """The streams of the program on a GPU, by the calls of its driver from now on."""
        return follow(self)

    @functools.cached_property
    def _frameworks(self) -> Frameworks:
        made = Frameworks(self.device, self.modules, self._judge, self.watch, self.selection, self._beside, self.names, self.followed)
        self._made.append(made)
        return made

    def attach(self, prepared: Prepared, set_symbol: Callable[[str, bytes], None]) -> None:
        """Write the control block of a module that another library has loaded."""
        self.device.hand_to(self)
        self.modules.attach(prepared, set_symbol)

    # -- launches --------------------------------------------------------------------------------------------------------

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
        earlier contents, so that the launch can be repeated where its record cannot be judged; None: it cannot be.
        """
        how: dict[str, Any] = {"shared": shared, "cluster": cluster, "cooperative": cooperative, "stream": stream}
        # Held to the end: what another thread's session launches meanwhile would be counted as this one's, or forgotten by it.
        with self._own() as modules:
            prepared = modules.for_cluster(prepared, math.prod(cluster))
            taken = self.selection.takes(prepared.number, entry)
            while self._launched_once(prepared, entry, grid, block, args, how, address_name, restore, taken=taken):
                pass
            return taken

    def _launched_once(
        self,
        prepared: Prepared,
        entry: str,
        grid: Dim3,
        block: Dim3,
        args: Sequence[bytes],
        how: dict[str, Any],
        address_name: AddressName | None,
        restore: Restore | None,
        *,
        taken: bool,
    ) -> bool:
        """Launch, and judge the record if there is one. Returns whether the launch is to be repeated; then the buffers are restored."""
        self.recording.kept, where = None, PlannedLaunch(grid, block, how["cluster"])
        prepared, recording = self._judge.start(prepared, entry, where, restore, how["stream"], args) if taken else (prepared, None)
        self.modules.used[prepared.number] = prepared
        prepared.address_name = address_name or self.address_name
        self.names.note(prepared, entry)
        handle = prepared.loaded if recording or (taken and prepared.recorded is None) else self.modules.plain(prepared)
        self._ever_launched, prepared.launched = True, prepared.launched or handle is prepared.loaded
        if how["cooperative"]:
            check_residency(self.backend, handle, entry, grid, block, how["shared"])
        threads = math.prod(grid) * math.prod(block)
        judged = self._judge.judged(prepared, entry, recording, handle)
        with judged, self.progress.launch(entry), self.watch.ending(prepared, entry, handle, threads):
            result = self.backend.launch(handle, entry, grid, block, args, seed=self.seed, timeout=self.options.timeout, **how)
            self.executed += getattr(result, "instructions", 0)
            if recording is not None:
                recording.ended(result, alone=self.alone)
            elif taken:
                self.recording.shapes.ran(prepared.plain, entry, grid, block)
            self.watch.after(prepared, entry, result, threads, alone=self.alone)
        self.news.tell(hooked=recording is None)
        return recording is not None and recording.repeats

    def replayed(self, prepared: Prepared, entry: str, recording: Started, names: AddressName) -> None:
        """Check a launch out of a file of histories, as if it had just ended."""
        with self._own():
            prepared.address_name = names
            self.names.note(prepared, entry)
            self._ever_launched = prepared.launched = True
            self._judge.check(prepared, entry, recording)

    def launched(self, prepared: Prepared, entry: str, buffers: Sequence[Argument]) -> None:
        """Name global memory by the buffers of a launch that the framework makes itself."""
        with self.device.lock:
            prepared.address_name = NamedBuffers(tuple(buffers), self.names.parameters(prepared, entry))
            self.names.note(prepared, entry)

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
        return self._judge.lost

    def uninstrumented(self, name: str, launches: int = 1) -> None:
        """List a kernel that runs without instrumentation."""
        self._uninstrumented[name] = self._uninstrumented.get(name, 0) + launches

    def note(self, text: str) -> None:
        """Add a line to the report's notes, once."""
        self._notes[text] = None

    # -- the report --------------------------------------------------------------------------------------------------------

    def report(self) -> model.Report:
        """Wait for the device, read the tables, and compute the verdict."""
        return self._report(*self._collect())

    def so_far(self) -> model.Report:
        """The report of what is known now, without a wait for the device."""
        known = self.device.owner is self and self._read_back(lost=self.device.lost or not self.backend.survives_fork)
        return self._report(*(known or (self._found, self._drained)))

    def _report(self, found: list[model.Finding], drained: Drained | None) -> model.Report:
        counters, outer = drained.counters if drained else None, self.options.looks_at_global
        summary = Summary(self.modules.used.values(), self.selection, drained, self.recording, outer)
        of_records = self.recording.findings, self.watch.findings
        findings, left_out = selected(found, *of_records, summary.static(), unknown_order(summary.used))
        report = assemble(
            device=self.backend.device_name,
            kernels=summary.kernels(),
            findings=findings,
            checked=summary.checked(),
            uninstrumented=summary.listed(self._uninstrumented),
            dropped=counters.dropped_findings if counters else 0,
            evicted=counters.evicted if counters else 0,
            covered=[*of_reasons(self.watch.reasons), *summary.gaps(), *of_reasons(left_out)],
            why_nothing=summary.why_nothing(self._ever_launched),
            notes=tuple({**self._notes, **self.recording.notes, **self.modules.notes()}),
            seed=self.seed,
            policy=self.options.policy,
        )
        return report if self._keeper is None else self._keeper.written(report)

    def places(self, report: model.Report) -> set[tuple[str, int]]:
        """Source lines that were watched."""
        return places(self.modules.used.values(), report)

    def harvest(self) -> None:
        """Store what the device has recorded for this session, before another session uses the tables."""
        self._found, self._drained = self._collect()

    def _collect(self) -> tuple[list[model.Finding], Drained | None]:
        """Stored records, and the tables if they record for this session. Waits for the device."""
        with self.device.lock:
            for frameworks in self._made:
                frameworks.settle()
            if self.device.owner is not self:
                return self._found, self._drained
            if not self.device.lost:
                self.watch.synchronize()
            return self._read_back(lost=self.device.lost)

    def _read_back(self, *, lost: bool) -> tuple[list[model.Finding], Drained | None]:
        """Stored records, and those of the tables."""
        if not self.device.has_hooks:
            return self._found, self._drained
        drained = self.device.shadow.drain(lost=lost)
        found = decode(drained.found, {p.number: self.sites_of(p) for p in self.modules.used.values()})
        return [*self._found, *found], drained if self._drained is None else self._drained.plus(drained)

    def sites_of(self, prepared: Prepared) -> ModuleSites:
        """The module's sites for the report. The text is parsed only if there is something to report."""
        relations = TextRelations(lambda: prepared.instrumented.module)
        sites, entries = prepared.instrumented.sites, prepared.entries
        names = functools.partial(self.names.name, prepared.number)
        return ModuleSites(sites, entries, prepared.framework, prepared.layout, names, relations, isa=self.options.isa)

    def take(self) -> model.Report | None:
        """The report since the last `take`, and a fresh start. None if nothing was launched."""
        if not self.modules.used and not self._uninstrumented:
            return None
        report = self.report()
        ran = tuple(kernel for kernel in report.kernels if kernel.launches)
        self._ever_launched |= bool(ran)
        self.watch.forget()
        self.selection.forget()
        self._uninstrumented.clear()
        self._notes.clear()
        self.recording.forget()
        for frameworks in self._made:
            frameworks.forget()
        if self._keeper is not None:
            self._keeper.forget()
        self._found, self._drained = [], None
        if self.device.owner is self and not self.device.lost:
            self.device.start(self.cta_limit)
        return replace(report, kernels=ran) if ran or report.uninstrumented else None
