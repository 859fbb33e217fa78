"""The kernels of a session for its report: their launches, their sites, and what was not checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from consan.dataclass import dataclass
from consan.options import INLINE, RECORD
from consan.reports import model
from consan.reports.counts import plural
from consan.reports.decoding.static import static_findings
from consan.reports.verdict.coverage import GLOBAL_MEMORY, Coverage, of_reasons
from consan.session.executing.recording import WITH_HOOKS, Recording
from consan.session.modules.prepared import Prepared
from consan.session.planning.schedules import KernelSchedules
from consan.session.planning.selection import Selection

if TYPE_CHECKING:
    from consan.session.modules.shadow import Counters, Drained

_REGISTERS: Final = "matrix-registers"
_SHARED: Final = "shared-memory"
_UNCHECKED: Final = "the registers of its matrix products were not checked"
CHECKED = (
    *(_SHARED, "barriers", "warp-barriers", "cp.async", "uninitialized-shared-memory", "shared-memory-bounds"),
    *("mbarriers", "bulk-copies", "matrix-operands", _REGISTERS, "proxies", "clusters"),
)
_SPECIAL = {"tcgen05": "tensor-memory", "launch-control": "launch-control"}
_COUNTED: Final = (
    *("launches", "unchecked", "proven_launches", "ctas", "histories", "recalled"),
    *("global_accesses", "global_compared", "global_proven", "global_checked", "global_ctas"),
)
_SPARED: Final = "left out, so that checking takes no more than --overhead allows"
_HURRIED: Final = "left out, since the checks of earlier launches had the memory for logs (--trace-memory gives more, --exhaustive waits)"
_SITES: Final = ("memory_sites", "sync_sites")  # the form with global memory has more


@dataclass(frozen=True)
class Summary:
    """The modules in use, and what the device has counted, if it has."""

    used: Iterable[Prepared]
    selection: Selection
    drained: Drained | None
    recording: Recording
    global_races: bool  # races in global memory were looked for

    def launched(self, prepared: Prepared) -> dict[str, int]:
        """Checked launches per kernel of a module, without kernels that had none."""
        counts = {name: self._launches(prepared, index) for index, name in enumerate(prepared.entries)}
        return {name: count for name, count in counts.items() if count}

    def _launches(self, prepared: Prepared, index: int) -> int:
        if prepared.recorded is not None:
            name = prepared.entries[index]
            return self.recording.kernels.tally(prepared, name).launches + sum(self.recording.kernels.unrecorded(prepared, name).values())
        return int(self.drained.launches[prepared.counter + index]) if self.drained else 0

    def why_nothing(self, ever_launched: bool) -> str:
        """Why no launch was checked, or ""."""
        if any(self.launched(used) for used in self.used):
            return ""
        return self.selection.why_nothing([] if ever_launched else [name for used in self.used for name in used.entries])

    def unseen(self) -> list[str]:
        """Why launches of modules get no log, which may be launched in each run of a process."""
        of_records = self.used if self.recording.options.records else ()
        return [f"{each.name} was not checked: {each.unseen}; {WITH_HOOKS}" for each in of_records if each.unseen]

    def static(self) -> list[model.Finding]:
        """Hazards found in the text of launched kernels: counted once per launch, with no CTA."""
        found = []
        for prepared in self.used:
            launches = self.launched(prepared) if prepared.instrumented.hazards else {}
            findings = static_findings(prepared.instrumented.hazards, launches, prepared.framework)
            found += [replace(finding, count=launches[finding.kernel], ctas=0) for finding in findings]
        return found

    def checked(self) -> tuple[str, ...]:
        """The areas that a clean verdict speaks for. Tensor memory and launch control are two where a kernel uses them."""
        recorded = (prepared.recorded for prepared in self.used if prepared.recorded is not None)
        families = {family for each in recorded for function in each.functions for family in function.families}
        special = (_SPECIAL[each] for each in _SPECIAL if each in families)
        return (*CHECKED, *special, *["global-memory"] * self.has_checked_globals())

    def has_checked_globals(self) -> bool:
        """Whether races in global memory were looked for in all kernels that were checked, in full."""
        return self.global_races and any(map(self.launched, self.used)) and not self._gaps(self.recording.kernels.global_race_gaps)

    def _gaps(self, of: Callable[[Prepared, str], tuple[str, ...]]) -> list[tuple[str, str]]:
        """Each kernel that has gaps, and why."""
        ran = ((prepared, name) for prepared in self.used for name in self.launched(prepared))
        return [(name, why) for prepared, name in ran for why in of(prepared, name)]

    def gaps(self) -> list[Coverage]:
        """CTAs without shadow memory, and launches that were not recorded."""
        unrecorded = [
            f"{plural(launches, 'launch', 'launches')} of {name} could not be recorded: {why}; {WITH_HOOKS}"
            for prepared in self.used
            for name in prepared.entries
            for why, launches in self.recording.kernels.unrecorded(prepared, name).items()
        ]
        return of_reasons([*(_dropped(self.drained.counters) if self.drained else []), *unrecorded])

    def _missing(self) -> dict[str, tuple[str, ...]]:
        """By kernel: register hazards in debug builds with matrix products, slices, and global memory that was to be checked."""
        debug = [
            (name, f"{_REGISTERS}: {name} is a debug build: {_UNCHECKED}")
            for prepared in self.used
            if prepared.instrumented.debug
            for name in self.launched(prepared)
            if any("wgmma" in function.families for function in prepared.instrumented.reachable(name))
        ]
        slices = [(name, f"{_SHARED}: {name}: {why}") for name, why in self._gaps(self._slices_left)]
        global_races = [(name, f"{GLOBAL_MEMORY}: {why}") for name, why in self._gaps(self.recording.gaps_that_count)]
        found: dict[str, tuple[str, ...]] = {}
        for name, why in dict.fromkeys((*debug, *slices, *global_races)):
            found[name] = (*found.get(name, ()), why)
        return found

    def _slices_left(self, prepared: Prepared, name: str) -> tuple[str, ...]:
        """The slices that are left, unless another form of the kernel had launches without: it shows shared memory as well."""
        kernels, others = self.recording.kernels, (each for each in self.used if each.plain == prepared.plain and each is not prepared)
        whole = (name in self.launched(other) and not kernels.slices_left(other, name) for other in others)
        return () if any(whole) else kernels.slices_left(prepared, name)

    def kernels(self) -> list[model.KernelSummary]:
        """One summary per kernel and engine: launches of one kernel may take forms with and without global memory."""
        found: dict[tuple[str, str, str], model.KernelSummary] = {}
        for prepared in self.used:
            for index, name in enumerate(prepared.entries):
                made = self._kernel(prepared, index, name)
                key = prepared.plain, name, made.engine
                found[key] = _united(found[key], made) if key in found else made
        missing = self._missing()
        return [replace(kernel, missing=missing.get(kernel.name, ())) for kernel in found.values()]

    def with_schedules(
        self, kernels: Iterable[model.KernelSummary], schedules: KernelSchedules, findings: list[model.Finding], unsettled: str
    ) -> list[model.KernelSummary]:
        """The kernels, with what the schedule can change in them. `unsettled`: why that is not known of a run that did not end."""
        texts = {name: prepared for prepared in self.used for name in prepared.entries}
        blocks = {name: [block for _, block, _ in self.recording.kernels.shapes.known(each.plain, name)] for name, each in texts.items()}
        return [replace(one, schedules=schedules.of(texts[one.name], one, blocks[one.name], findings, unsettled)) for one in kernels]

    def _kernel(self, prepared: Prepared, index: int, name: str) -> model.KernelSummary:
        reached = prepared.instrumented.reachable(name)
        counts = Counter((each.opcode, each.ptx_line) for function in reached for each in function.unmodelled)
        tally = self.recording.kernels.tally(prepared, name)
        launches = self._launches(prepared, index) + self.selection.unchecked(prepared.number, name)
        called = set[str]().union(*(function.calls for function in reached))
        external = [model.Unmodelled(f"call {name}", 0) for name in prepared.instrumented.external if name in called]
        return model.KernelSummary(
            name=name,
            launches=launches,
            memory_sites=sum(f.memory_sites for f in reached),
            sync_sites=sum(f.sync_sites for f in reached),
            unchecked=sum(self.recording.kernels.unrecorded(prepared, name).values()),
            proven_launches=self.recording.kernels.of(prepared, name).unlogged,
            proof=self.recording.kernels.proof(prepared, name, launches),
            global_stores=sum(f.writes.stores for f in reached),
            global_atomics=sum(f.writes.atomics for f in reached),
            generic_writes=sum(f.writes.generic for f in reached),
            open_points=sum(f.open_points for f in reached),
            grid_controls=sum(f.grid_controls for f in reached),
            annotations=tuple(dict.fromkeys(each for f in reached for each in f.annotations)),
            compared_launches=self.recording.accesses.compares and self.recording.kernels.of(prepared, name).compared,
            engine=INLINE if prepared.recorded is None else RECORD,
            ctas=tally.ctas,
            histories=tally.histories,
            recalled=tally.recalled,
            global_accesses=tally.accesses,
            global_compared=tally.compared,
            global_proven=tally.proven,
            global_ctas=tally.compared_ctas,
            global_checked=self.recording.kernels.global_race_launches(prepared, name),
            **self.recording.kernels.shapes.of(prepared.plain, name),
            global_gaps=self.recording.kernels.global_race_gaps(prepared, name) if self.global_races else (),
            excluded=(GLOBAL_MEMORY,) if self.recording.options.global_excluded else (),
            unmodelled=tuple(model.Unmodelled(opcode, line, count) for (opcode, line), count in counts.items()) + tuple(external),
        )

    def listed(self, uninstrumented: Mapping[str, int]) -> list[model.Uninstrumented]:
        """The kernels that ran without hooks."""
        others = [model.Uninstrumented(name, count, named=self.selection.names(name)) for name, count in uninstrumented.items()]
        reasons = {
            "left out by a filter": self.selection.left_out,
            _SPARED: self.selection.spared,
            _HURRIED: self.selection.left_in_a_hurry(),
        }
        left_out = ((name, count, why) for why, counts in reasons.items() for (_, name), count in counts.items())
        return others + [model.Uninstrumented(name, count, reason=why) for name, count, why in left_out]


def _united(one: model.KernelSummary, other: model.KernelSummary) -> model.KernelSummary:
    """The summary of two forms of a kernel."""
    counts = {name: getattr(one, name) + getattr(other, name) for name in _COUNTED}
    sites = {name: max(getattr(one, name), getattr(other, name)) for name in _SITES}
    proofs = {each.proof for each in (one, other) if each.launches}
    proof = proofs.pop() if len(proofs) == 1 else None
    return replace(one, **counts, **sites, proof=proof, global_gaps=tuple(dict.fromkeys((*one.global_gaps, *other.global_gaps))))


def places(used: Iterable[Prepared], report: model.Report) -> set[tuple[str, int]]:
    """Source lines that were watched: instructions with hooks that launched kernels can reach, and inlined calls."""
    launched = {kernel.name for kernel in report.kernels if kernel.launches}
    found = set[tuple[str, int]]()
    for prepared in used:
        reached = {f.name for name in launched.intersection(prepared.entries) for f in prepared.instrumented.reachable(name)}
        for site in (site for site in prepared.instrumented.sites if site.function in reached):
            steps = ((site.file, site.line), *((frame.file, frame.line) for frame in site.inlined))
            found |= {(file, line) for file, line in steps if file and line}
    return found


def _dropped(counters: Counters) -> list[str]:
    """CTAs that ran unchecked, and why."""
    shadow, clusters = "the shadow memory was full", "in clusters that their module was not instrumented for"
    counts = {shadow: counters.dropped_ctas, clusters: counters.foreign_ctas}
    return [f"{plural(ctas, 'CTA')} ran unchecked: {reason}" for reason, ctas in counts.items() if ctas]
