"""Launches of a program's CUDA C++, compared with those of the same source compiled without optimisation.

An optimiser removes accesses, and with them a race of the source, which another compiler brings back. Where an adapter knows the text that
the program has compiled, the first launch of each kernel is made once more with the kernel as it is compiled without optimisation, from
the same memory, on the virtual machine, and in other schedules where these are asked for. A race that only that launch shows is a
warning, `found without optimisation`. Its repairs are lines of the source, which hold in both texts.

A launch in which an error was found is not compared: repair that one first. So is none of a program whose threads run at the same time,
since its memory is brought back afterwards.
"""

from __future__ import annotations

import hashlib
import resource
import threading
import time
from collections.abc import Callable
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from consan import late
from consan._errors import ConsanError
from consan.dataclass import dataclass
from consan.reports.counts import some
from consan.reports.model import Finding, Report
from consan.reports.source.sources import embed
from consan.reports.verdict.unoptimised import schedule_notes, unknown_to, with_warnings
from consan.session.executing.executor import RequestedRun
from consan.session.modules.prepared import Prepared
from consan.session.modules.variables import bound
from consan.session.planning.options import MOST_MEMORY, OFF, SessionOptions, is_quickly_compared

if TYPE_CHECKING:
    from consan.session.asking.reruns import CudaSource, Ran
    from consan.session.session import Session

_BUDGET: Final = 2.0  # seconds of processor time of a session, for `auto`; and those that a compiler may take
_LONGEST: Final = 10.0  # seconds of one launch
_LONGEST_ON_REQUEST: Final = 60.0  # seconds that a compiler may take
_LONG: Final = "that would take long (--unoptimized on does it)"


@dataclass(frozen=True)
class CudaText:
    """CUDA C++ that a program has compiled: `code`, which begins in a line of a file.

    `compiled`: makes PTX of a text in its place, with optimisation or without. `seconds`: of processor time that it has taken.
    """

    file: str
    line: int
    code: str
    compiled: Callable[[str, bool], str]
    seconds: float = 0.0

    @property
    def source(self) -> CudaSource:
        """As repairs have it, whose lines are those of the file."""
        above = self.line - 1

        def make(optimised: bool) -> Callable[[str], str]:
            return lambda text: self.compiled(text[above:], optimised)

        return late.reruns.CudaSource(self.file, "\n" * above + self.code, make(False), make(True))


@dataclass
class _Other:
    """A session for launches of another text of a kernel."""

    ptx: str
    explore: float
    session: Session
    prepared: Prepared


def _threads() -> str:
    return "the program has other threads" if sum(not each.daemon for each in threading.enumerate()) > 1 else ""


@dataclass
class WithoutOptimisation:
    """The comparisons of one session. `opens`: makes a session on its device."""

    session: Session
    opens: Callable[[SessionOptions], Session]
    texts: dict[str, CudaText] = field(default_factory=dict)  # by their PTX
    origins: dict[str, Callable[[float], CudaText]] = field(default_factory=dict)  # what finds a text in so many seconds, by its PTX
    meanwhile: Callable[[], str] = _threads  # what may use the device's memory meanwhile
    _seen: set[tuple[str, str]] = field(default_factory=set)  # text and name of kernels
    _found: list[Finding] = field(default_factory=list)
    _left: dict[str, list[str]] = field(default_factory=dict)  # why kernels were not compared
    _notes: list[str] = field(default_factory=list)
    _spent: float = 0.0
    _explored: float = 0.0  # seconds that other schedules have taken

    def launched(self, prepared: Prepared, asked: RequestedRun, launch: Callable[[Prepared, RequestedRun], bool]) -> bool:
        """Make a launch and compare it, if it is the first of its kernel. Returns whether it was checked."""
        key = prepared.plain, asked.entry
        if not self.knows(prepared.plain) or not self._wanted or key in self._seen:
            return launch(prepared, asked)
        self._seen.add(key)
        machine: Any = getattr(self.session.backend, "machine", None)
        before = self.session.executed
        restore = machine.saved(MOST_MEMORY)
        taken = launch(prepared, asked)
        if taken:
            executed = self.session.executed - before
            why = self._compared(_Launch(self, machine, prepared, asked, restore), executed)
            if why:
                self._left.setdefault(why, []).append(asked.entry)
        return taken

    @property
    def _wanted(self) -> bool:
        session = self.session
        return session.options.unoptimized != OFF and session.options.records and session.backend.simulates

    def _compared(self, launch: _Launch, executed: int) -> str:
        """Compare a launch with that of the kernel without optimisation. Returns why not, or why not to the end."""
        own = launch.asked.entry
        known = [*self.session.recording.findings, *self.session.watch.findings]
        if any(each.severity == "error" and each.kernel == own for each in known):
            return ""
        if launch.restore is None:
            return "the memory of the program is too large to be kept"
        if others := self.meanwhile():
            return others
        began = processor_time()
        try:
            text = self._text(launch.prepared.plain, executed)
            found, why = ([], _LONG) if text is None else launch.races(known, text)
        except ConsanError as error:
            found, why = [], str(error).partition("\n")[0]
        self._spent += processor_time() - began - launch.explored
        self._explored += launch.explored
        self._found += found
        self._notes += launch.notes
        return why

    @property
    def explore(self) -> float:
        """Seconds that are left for other schedules."""
        return max(0.0, (self.session.options.explore or 0.0) - self._explored)

    def _text(self, ptx: str, executed: int) -> CudaText | None:
        """The text of a kernel; None: to compare it would take long. Raises `UsageError`: it is not found."""
        always = self.session.options.unoptimized == "on"
        if not always and (self._spent >= _BUDGET or not is_quickly_compared(0.0, len(ptx), executed)):
            return None
        if ptx not in self.texts:
            self.texts[ptx] = self.origins[ptx](_LONGEST_ON_REQUEST if always else _BUDGET)
        text = self.texts[ptx]
        return text if always or is_quickly_compared(text.seconds, len(ptx), executed) else None

    def knows(self, ptx: str) -> bool:
        """Whether PTX was compiled from a text that may be found."""
        return ptx in self.texts or ptx in self.origins

    def learn(self, ptx: str, other: WithoutOptimisation, known: str) -> None:
        """Know of PTX what another session knows of it, under the text that it has there."""
        self.texts |= {ptx: other.texts[known]} if known in other.texts else {}
        self.origins |= {ptx: other.origins[known]} if known in other.origins else {}

    def added(self, report: Report) -> Report:
        """The report, with what only kernels without optimisation have shown."""
        left = [f"{some(names, 'kernel')}: not compared with the kernel without optimisation: {why}" for why, names in self._left.items()]
        found, report = unknown_to(report, self._found), replace(report, notes=(*report.notes, *self._notes, *left))
        return with_warnings(report, found) if found else report

    def forget(self) -> None:
        """Start afresh after a report."""
        self._found.clear()
        self._left.clear()
        self._notes.clear()


@dataclass
class _Launch:
    """One launch, which is made again with other texts of its kernel."""

    owner: WithoutOptimisation
    machine: Any
    prepared: Prepared
    asked: RequestedRun
    restore: Callable[[], None] | None
    other: _Other | None = None
    places: set[int] = field(default_factory=set)  # addresses of the program's memory
    explored: float = 0.0  # seconds that other schedules have taken, with the launch itself
    notes: list[str] = field(default_factory=list)

    def races(self, known: list[Finding], text: CudaText) -> tuple[list[Finding], str]:
        """The races that only the kernel without optimisation has, with their repairs; and why not all of it was looked at."""
        after = self.machine.saved(MOST_MEMORY)
        self.places = {each.address for each in self.machine.arena.allocations}
        try:
            with self.owner.session.turn():
                return self._races(known, text.source)
        finally:
            after()

    def _races(self, known: list[Finding], source: CudaSource) -> tuple[list[Finding], str]:
        ptx = source.compiled(source.text)
        began, explore = processor_time(), self.owner.explore
        ran = self.run(ptx, self.asked.seed, explore)
        if self.owner.session.options.explore:
            self.explored, self.notes = processor_time() - began, list(schedule_notes(ran.report))
        races = late.reruns.races(ran.report)
        found = unknown_to(replace(ran.report, findings=tuple(known)), races)
        if found:
            module = late.ptx.parse(ptx, self.prepared.name)
            search = late.reruns.Reruns(module, self._changed(ran.report), self.asked.block, self.asked.how["cluster"], source=source)
            found = list(search.confirmed(replace(ran.report, findings=tuple(found))).findings)
        return found, late.reruns.why_not_compared(ran.report, races)

    def run(self, ptx: str, seed: int, explore: float = 0.0) -> Ran:
        """Make the launch of a text, from the memory that the program had before its own. `explore`: seconds for other schedules."""
        if self.other is None or (self.other.ptx, self.other.explore) != (ptx, explore):
            self.other = self._opened(ptx, explore)
        session, prepared, asked = self.other.session, self.other.prepared, self.asked
        assert self.restore is not None
        self.restore()
        session.seed, executed = seed, session.executed
        session.launch(prepared, asked.entry, asked.grid, asked.block, asked.args, **asked.how, address_name=asked.address_name)
        contents = self.machine.arena.contents(MOST_MEMORY)
        results = hashlib.blake2b(b"".join(data.tobytes() for address, data in contents if address in self.places)).digest()
        report = session.take()
        assert report is not None, "a kernel was launched"
        in_all = late.schedules.no_schedule_changes(report, prepared, asked.entry, asked.block)
        return late.reruns.Ran(embed(report), results, session.executed - executed, in_all)

    def _changed(self, before: Report) -> Callable[[str, int], Ran]:
        """A function that runs a changed kernel, for what a repair must not leave."""

        def run(ptx: str, seed: int) -> Ran:
            ran = self.run(ptx, seed)
            return replace(ran, report=replace(ran.report, findings=tuple(late.reruns.judged(ran.report, before))))

        return run

    def _opened(self, ptx: str, explore: float) -> _Other:
        """The text in a session of its own. It uses the variables of the module that the program has loaded."""
        own, backend = self.owner.session, self.owner.session.backend
        limit = min(own.options.timeout or _LONGEST, _LONGEST)
        session = self.owner.opens(own.options.alone(explore, timeout=limit, keep_histories=False))
        session.recording.fixes.off, session.alone = True, own.alone
        text = bound(ptx, lambda name: backend.symbol(self.prepared.loaded, name)[0])
        return _Other(ptx, explore, session, session.prepare(text, name=self.prepared.name))


def processor_time() -> float:
    """Seconds of this process, and of the compilers that it has started."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + used.ru_utime + used.ru_stime
