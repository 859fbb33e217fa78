"""The recording engine in a session: which modules it takes, its memory, and what it has checked.

--engine record asks for it. A module that the engine does not take, and a launch that the trace memory cannot hold, use called
hooks, and a note in the report says why. `auto` is `inline` until the two engines are equally exact.

Not handled: kernels that a framework launches on a GPU by itself (they take called hooks), and the end of a recorded kernel that hangs on
a GPU: its record is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from consan.backends.base import Backend, Dim3
from consan.checker.build import compiler, library
from consan.checker.recorder import Checked, Histories, LaunchedKernel, RecordedLaunch, Tally, check, start
from consan.instrument import Instrumented, Places, communicates
from consan.instrument.record import Recorded, Refusal, record
from consan.instrument.runtime import Variant
from consan.reports import model
from consan.reports.merging import merge_findings

if TYPE_CHECKING:
    from consan.instrument.ptx import Module
    from consan.session.prepared import Prepared

INLINE: Final = "inline"
RECORD: Final = "record"
_GiB = 1 << 30
_MOST_ON_CPU = 4 * _GiB  # memory that a backend gives zeroed costs nothing until it is touched
_MERGE_FROM = 512  # findings: a program may have one in each of a million launches
_SHARE = 8  # of a GPU's memory


@dataclass
class Recording:
    """What a session records."""

    engine: str
    trace_memory: int | None = None
    exhaustive: bool = False  # equal CTAs are replayed too
    refusals: dict[str, str] = field(default_factory=dict)  # why modules are not recorded, by their text
    histories: Histories = field(default_factory=dict)  # since the last report
    findings: list[model.Finding] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)
    _tallies: dict[tuple[int, str], Tally] = field(default_factory=dict)

    def rewritten(self, read: Callable[[], Module]) -> tuple[Instrumented, Recorded] | str:
        """The recorded module, or why it is not recorded. Raises `PtxSyntaxError`."""
        if compiler() is None:
            return "there is no C++ compiler for the checker (g++, clang++, or the Python package ziglang)"
        try:
            done = record(read())
        except Refusal as reason:
            return str(reason)
        library()
        return _as_instrumented(read(), done), done

    def most_bytes(self, backend: Backend) -> int:
        """Limit on the memory for logs."""
        if self.trace_memory is not None:
            return self.trace_memory
        return _most_bytes(None if backend.allocates_zeros else backend.memory_bytes)

    def start(self, backend: Backend, prepared: Prepared, entry: str, grid: Dim3, block: Dim3) -> Started:
        """Make the memory for a launch. Raises `NoRoom`."""
        assert prepared.recorded is not None
        launched = LaunchedKernel(prepared.number, prepared.entries.index(entry), grid, block)
        launch = start(backend, prepared.loaded, prepared.recorded, launched, self.most_bytes(backend))
        return Started(launch, launched, prepared.recorded, self.histories, self.exhaustive)

    def note(self, prepared: Prepared, entry: str, checked: Checked, found: list[model.Finding]) -> None:
        """Keep what was found, and count what was checked."""
        self.findings += found
        if len(self.findings) > _MERGE_FROM:
            self.findings = list(merge_findings(self.findings))
        mine, new = self._tallies.setdefault((prepared.number, entry), Tally()), checked.tally
        mine.launches += new.launches
        mine.ctas += new.ctas
        mine.histories += new.histories
        mine.events += new.events

    def tally(self, prepared: Prepared, entry: str) -> Tally:
        """What was checked of a kernel."""
        return self._tallies.get((prepared.number, entry), Tally())

    def takes_hooks(self, name: str, why: str) -> None:
        """Note that a module is checked with called hooks."""
        self.notes[f"{name} was checked with called hooks (--engine inline): {why}"] = None

    def forget(self) -> None:
        """Start anew, for the next report."""
        self._tallies.clear()
        self.histories.clear()
        self.notes.clear()
        self.findings.clear()


@dataclass
class Started:
    """A recorded launch."""

    launch: RecordedLaunch
    launched: LaunchedKernel
    recorded: Recorded
    histories: Histories
    exhaustive: bool = False

    def check(self, *, limit: int = 0) -> Checked:
        """Replay what it did. `limit`: only the first CTAs (0: all)."""
        return check(self.launch, self.recorded, self.launched, self.histories, limit=limit, exhaustive=self.exhaustive)

    def free(self) -> None:
        """Free its memory."""
        self.launch.free()


def _most_bytes(gpu_memory: int | None) -> int:
    """The default limit on the memory for logs. `gpu_memory`: None where memory costs nothing until it is touched."""
    return _MOST_ON_CPU if gpu_memory is None else gpu_memory // _SHARE


def describe(gpu_memory: int | None) -> tuple[str, str]:
    """For `consan doctor`: the command of the compiler, empty if there is none, and the memory for logs."""
    most = _most_bytes(gpu_memory) // (1 << 20)
    return " ".join(compiler() or ()), f"at most {most:,} MiB for the logs of a launch (--trace-memory)"


def gaps_of(entry: str, checked: Checked) -> list[str]:
    """What was not checked, as sentences."""
    return [f"{entry}: {model.plural(ctas, 'CTA')} {why}" for why, ctas in checked.gaps.items()]


def _as_instrumented(module: Module, done: Recorded) -> Instrumented:
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
        places=Places(lambda: module),
        communicates=communicates(module),
        hazards=done.hazards,
        debug=done.debug,
    )
