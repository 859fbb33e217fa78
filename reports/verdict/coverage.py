"""Coverage: the parts of each kernel that were checked, and what that means for the verdict.

`coverage` has a row for each kernel that ran and each area: its state. An area in scope that was checked in no
launch of a kernel, or in none of some shape (`NOT_CHECKED`), is a gap: the verdict is `incomplete`. A share of the launches of each shape
(`SAMPLED`) is no gap, and neither is what the user's options leave out. Slices that are left to later launches are a gap. `by_kernel` has
the same for the report's JSON.

`not_checked` words the areas that are missing from `checked`. A sentence begins with the area's name, so that programs can test for it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import Final

from consan import late
from consan.dataclass import dataclass
from consan.reports.counts import plural
from consan.reports.model import NOTHING_RAN, AllLaunchesProof, KernelSummary, Report, Schedules, Unmodelled

GLOBAL_MEMORY: Final = "global-memory"
INSTRUCTIONS: Final = "instructions"  # that the engines model
LAUNCHES: Final = "launches"
RACES: Final = "races"  # in shared and global memory

CHECKED, SAMPLED, PROVEN = "checked", "sampled", "proven"
FOR_ALL: Final = "proven for all launches"
_NO_RACE: Final = "no race in shared or global memory; not covered: misused barriers, hangs, reads of unwritten memory"
_CONCURRENT: Final = "what may run at the same time in another stream"
NOT_COMPARED: Final = f"it was not compared with {_CONCURRENT}"  # a reason of a kernel whose launches were looked at by themselves
EXCLUDED: Final = "excluded by the user"
NOT_CHECKED: Final = "not checked"
SHOWN: Final = 3  # shapes in a sentence
_SLICES: Final = re.compile(r"sampled: [\d,]+ of [\d,]+ slices")  # the verdict is incomplete until all were looked at


@dataclass(frozen=True)
class Coverage:
    """How one area of one kernel was checked: in `checked` of `launches` launches, or of their CTAs. `why`: the reasons why not in all.

    `kernel` is empty where it is the run's. `missed`: shapes without a launch that was checked.
    """

    kernel: str
    area: str
    state: str
    checked: int = 0
    launches: int = 0
    why: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    ctas: tuple[int, int] | None = None  # where a share of the CTAs was compared in each launch: how many, of how many


def kernels_checked(report: Report) -> tuple[KernelSummary, ...]:
    """The kernels with a recorded launch: neither excluded by a filter nor unchecked."""
    left_out: dict[str, int] = {}
    for kernel in report.uninstrumented:
        left_out[kernel.name] = left_out.get(kernel.name, 0) + kernel.launches
    return tuple(kernel for kernel in report.kernels if kernel.launches > kernel.unchecked + left_out.get(kernel.name, 0))


def rows(report: Report) -> tuple[Coverage, ...]:
    """Global memory of a report's kernels. Summaries of one kernel, such as those of several processes, are one row."""
    sums: dict[tuple[object, ...], KernelSummary] = {}
    for kernel in kernels_checked(report):
        key = kernel.name, *_writes(kernel)
        sums[key] = _sum(sums[key], kernel) if key in sums else kernel
    return tuple(coverage_of(kernel) for kernel in sums.values())


def coverage(report: Report, why_nothing: str = "") -> tuple[Coverage, ...]:
    """The coverage of a report, in the order in which reasons are given. `why_nothing`: why no kernel was checked, if none was."""
    named = (kernel for kernel in report.uninstrumented if kernel.named)
    nothing = f"{NOTHING_RAN}: {why_nothing}" if why_nothing else NOTHING_RAN  # launches that a filter excludes must not be `clean`
    return (
        *of_reasons([nothing] if nothing_ran(report) else []),
        *_instructions(report),
        *rows(report),
        *_others(report),
        *(_gap_of(kernel.name, LAUNCHES, f"the filter names {kernel.name}, which cannot be instrumented") for kernel in named),
        *_counted(report.dropped, "finding was dropped: the ring was full", "findings were dropped: the ring was full"),
        *_counted(report.evicted, "access record was evicted too early", "access records were evicted too early"),
    )


def nothing_ran(report: Report) -> bool:
    """Whether no kernel was launched that consan looks at. Launches that could not be recorded have reasons of their own."""
    return not kernels_checked(report) and not any(kernel.unchecked for kernel in report.kernels)


def says_nothing_ran(reason: str) -> bool:
    """Whether a reason is that no kernel was checked, with or without an explanation."""
    return reason.startswith(NOTHING_RAN)


def of_reasons(reasons: Iterable[str]) -> list[Coverage]:
    """The gaps of a run: one sentence each."""
    return [_gap_of("", LAUNCHES, reason) for reason in reasons]


def _gap_of(kernel: str, area: str, why: str) -> Coverage:
    return Coverage(kernel, area, NOT_CHECKED, why=(why,))


def _others(report: Report) -> Iterator[Coverage]:
    """The areas of each kernel other than its global memory and its instructions. Launches that ran unchecked are a gap in each of them."""
    left_out = Counter[str]()
    for listed in report.uninstrumented:
        left_out[listed.name] += listed.launches
    areas = [area for area in report.checked if area != GLOBAL_MEMORY] or [LAUNCHES]
    for kernel in (kernel for kernel in report.kernels if kernel.launches):
        looked = max(0, kernel.launches - kernel.unchecked - kernel.proven_launches - left_out[kernel.name])
        why = (f"{plural(kernel.unchecked, 'launch', 'launches')} of {kernel.name} ran unchecked",) if kernel.unchecked else ()
        for area in areas:
            excluded = area in kernel.excluded or not (looked or why)
            state = EXCLUDED if excluded else NOT_CHECKED if why else SAMPLED if looked < kernel.launches else CHECKED
            yield Coverage(kernel.name, area, state, looked, kernel.launches, why)
        for kind in _kinds(report, kernel):
            yield Coverage(kernel.name, kind, EXCLUDED)
        if kernel.proof is not None:
            yield Coverage(kernel.name, RACES, FOR_ALL)
        yield from missing(kernel)


def missing(kernel: KernelSummary) -> Iterator[Coverage]:
    """The gaps of a kernel that no other launch of it fills."""
    for each in kernel.missing:
        area, _, reason = each.partition(": ")
        yield _gap_of(kernel.name, area, reason)


def _kinds(report: Report, kernel: KernelSummary) -> tuple[str, ...]:
    """The kinds of findings that the user has excluded: `excluded` has areas, too."""
    return tuple(name for name in kernel.excluded if name not in (*report.checked, GLOBAL_MEMORY))


def _instructions(report: Report) -> Iterator[Coverage]:
    """A row for each launched kernel: the opcodes that are not modelled, with their PTX lines."""
    found: dict[str, dict[str, list[Unmodelled]]] = {}
    for kernel in (kernel for kernel in report.kernels if kernel.launches):
        opcodes = found.setdefault(kernel.name, {})
        for gap in kernel.unmodelled:
            opcodes.setdefault(gap.opcode, []).append(gap)
    for name, opcodes in found.items():
        why = tuple(f"{name} contains {opcode}, which is not modelled ({_times(those)})" for opcode, those in opcodes.items())
        yield Coverage(name, INSTRUCTIONS, NOT_CHECKED if why else CHECKED, why=why)


def _times(gaps: list[Unmodelled]) -> str:
    return f"{plural(sum(gap.count for gap in gaps), 'time')}, {_ptx_lines(gaps)}"


def by_kernel(report: Report) -> dict[str, dict[str, str]]:
    """For each kernel that was launched, how each area was checked: the state, in words. A gap comes before the other rows of its area."""
    found: dict[str, dict[str, Coverage]] = {}
    for row in (*_instructions(report), *rows(report), *_others(report)):
        areas = found.setdefault(row.kernel, {})
        before = areas.get(row.area)
        if before is None or (row.state == NOT_CHECKED and before.state != NOT_CHECKED):
            areas[row.area] = row
    return {kernel: {area: _in_words(row) for area, row in areas.items() if area != LAUNCHES} for kernel, areas in found.items()}


def _in_words(row: Coverage) -> str:
    if slices := _SLICES.search("; ".join(row.why) if row.state == NOT_CHECKED else ""):
        return slices[0]
    if row.state == SAMPLED:
        some, whole = row.ctas or (row.checked, row.launches)
        return f"{SAMPLED} ({some} of {whole})"
    return f"{NOT_CHECKED} ({'; '.join(gaps((row,)))})" if row.state == NOT_CHECKED else row.state


_SHOWN: Final = 5  # PTX lines that are named


def _ptx_lines(gaps: list[Unmodelled]) -> str:
    numbers = sorted({gap.ptx_line for gap in gaps})
    more = f" and {len(numbers) - _SHOWN} more" if len(numbers) > _SHOWN else ""
    return f"PTX line{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers[:_SHOWN]))}{more}"


def _counted(number: int, one: str, many: str) -> list[Coverage]:
    return of_reasons([f"{number:,} {one if number == 1 else many}"] if number else [])


def gaps(coverage: Iterable[Coverage]) -> tuple[str, ...]:
    """Why not everything was checked: one sentence for each reason."""
    found = (row for row in coverage if row.state == NOT_CHECKED)
    return tuple(dict.fromkeys(sentence for row in found for sentence in (_of_memory(row) if row.area == GLOBAL_MEMORY else row.why)))


def _of_memory(row: Coverage) -> Iterator[str]:
    what = f"global memory was not checked in full in {row.kernel}"
    if row.checked and row.missed:
        more = f" and {len(row.missed) - SHOWN} more" if len(row.missed) > SHOWN else ""
        shapes = f"{plural(len(row.missed), 'shape')} ({', '.join(row.missed[:SHOWN])}{more})"
        yield f"{what}: none of the launches of {shapes} was compared in full: {'; '.join(row.why)}".rstrip(": ")
        return
    yield from (f"{what}: {why}" for why in row.why)
    if not row.why:
        yield f"{what}: called hooks do not look for races there"


def coverage_of(kernel: KernelSummary) -> Coverage:
    """Global memory of one summary."""
    counts = kernel.global_checked, kernel.launches
    ctas = kernel.global_ctas, kernel.ctas
    shares = kernel.global_checked == kernel.launches and 0 < ctas[0] < ctas[1]
    return Coverage(kernel.name, GLOBAL_MEMORY, _state(kernel), *counts, kernel.global_gaps, kernel.global_missed, ctas if shares else None)


def _state(kernel: KernelSummary) -> str:
    """Without a write to global memory there is no race of the kernel's own."""
    proven = 0 < kernel.global_proven == kernel.global_accesses
    states = {
        EXCLUDED: GLOBAL_MEMORY in kernel.excluded,
        FOR_ALL: kernel.proof is not None and kernel.proof.whole,
        CHECKED: not any(_writes(kernel)),
        NOT_CHECKED: not kernel.global_checked or bool(kernel.global_missed),
        SAMPLED: kernel.global_checked < kernel.launches or bool(kernel.global_gaps),
        PROVEN: proven,
    }
    return next((state for state, holds in states.items() if holds), CHECKED)


def _writes(kernel: KernelSummary) -> tuple[int, int, int]:
    """The instructions that write global memory, or may."""
    return kernel.global_stores, kernel.global_atomics, kernel.generic_writes


def _sum(one: KernelSummary, other: KernelSummary) -> KernelSummary:
    counts = ("launches", "ctas", "global_checked", "global_accesses", "global_proven", "global_ctas")
    shapes = tuple(dict.fromkeys((*one.global_shapes, *other.global_shapes)))
    missed = tuple(dict.fromkeys(shape for shape in (*one.global_missed, *other.global_missed) if shape not in shapes))
    return replace(
        one,
        **{name: getattr(one, name) + getattr(other, name) for name in counts},
        global_gaps=tuple(dict.fromkeys((*one.global_gaps, *other.global_gaps))),
        global_shapes=shapes,
        global_missed=missed,
        excluded=tuple(area for area in one.excluded if area in other.excluded),
        proof=one.proof if one.proof == other.proof else None,
    )


def not_checked(report: Report) -> tuple[str, ...]:
    """One sentence for each area that is missing from the report's `checked`."""
    kernels = kernels_checked(report)
    areas = (f"{area}: {sentence(kernels)}" for area, sentence in AREAS.items() if area not in report.checked)
    kinds = dict.fromkeys(kind for kernel in report.kernels for kind in _kinds(report, kernel))
    return (*areas, *(f"{kind}: {EXCLUDED}" for kind in kinds), *_open_points(kernels), *_launches(kernels))


def _open_points(kernels: tuple[KernelSummary, ...]) -> tuple[str, ...]:
    """Warp-synchronous instructions in device functions that are called, and those of a kernel with too many of them."""
    found = [kernel.open_points for kernel in kernels if kernel.open_points]
    points = plural(sum(found), "warp-synchronous instruction")
    where = plural(len(found), "kernel")
    return (f"divergence: lanes that pass by {points} in {where} are seen only at a later one",) if found else ()


def _launches(kernels: tuple[KernelSummary, ...]) -> tuple[str, ...]:
    """Kernels of programmatic dependent launches (SEMANTICS 12, R-GM14)."""
    found = [kernel.name for kernel in kernels if kernel.grid_controls and not kernel.compared_launches]
    if not found:
        return ()
    return (f"launches: races between {', '.join(found)} and a kernel that runs beside it (griddepcontrol) are not looked for",)


def _global_memory(kernels: tuple[KernelSummary, ...]) -> str:
    within, concurrent = list[str](), list[str]()
    for kernel in kernels:
        reasons = [gap.partition(f"{NOT_COMPARED}: ") for gap in dict.fromkeys(kernel.global_gaps)]
        if inside := [gap for gap, found, _ in reasons if not found]:
            within.append(f"in {kernel.name}: {', and '.join(inside)}")
        if others := [why for _, found, why in reasons if found]:
            concurrent.append(f"between {kernel.name} and {_CONCURRENT}: {', and '.join(others)}")
    gaps = dict.fromkeys((*within, *concurrent))
    return f"races are not looked for {'; '.join(gaps) if gaps else f'({_global_writes(kernels)})'}"


def _global_writes(kernels: tuple[KernelSummary, ...]) -> str:
    """`12 store and 3 atomic instructions in 2 kernels`."""
    if not kernels:
        return "no kernel was checked"
    stores, atomics = (sum(getattr(kernel, name) for kernel in kernels) for name in ("global_stores", "global_atomics"))
    generic = sum(kernel.generic_writes for kernel in kernels)
    more = f", and {generic:,} stores or atomics with generic addresses" if generic else ""
    return f"{stores:,} store and {plural(atomics, 'atomic instruction')} in {plural(len(kernels), 'kernel')}{more}"


AREAS: Final[dict[str, Callable[[tuple[KernelSummary, ...]], str]]] = {GLOBAL_MEMORY: _global_memory}


@cache
def installed_version() -> str:
    """The version of consan; "unknown" where it is not installed as a package."""
    try:
        return late.metadata.version("consan")
    except late.metadata.PackageNotFoundError:
        return "unknown"


# Schedules ---------------------------------------------------------------------------------------------------------------

HOLDS: Final = "holds for every schedule"


def schedule_sentence(schedules: Schedules, *, whole: bool = True) -> str:
    """`holds for every schedule`, and why (`whole`); else why another schedule may do otherwise, and which were run."""
    if schedules.holds and not whole:
        return HOLDS
    if schedules.holds:
        return f"{HOLDS}: no order, branch or address follows from what others do, but for the synchronisation that all share"
    return "; ".join(filter(None, (f"may depend on it: {schedules.why}", explored_sentence(schedules))))


def explored_sentence(schedules: Schedules) -> str:
    """`12 schedules, all outcomes of 3 observations seen`; else why none were run."""
    if not schedules.explored:
        return schedules.ended
    of = "all" if schedules.outcomes >= schedules.possible else f"{schedules.outcomes} of {schedules.possible}"
    seen = f"{of} outcomes of {plural(schedules.observations, 'observation')} seen" if schedules.possible else "nothing observed"
    return ", ".join(filter(None, (plural(schedules.explored, "schedule"), seen, schedules.ended)))


def united(one: Schedules | None, other: Schedules | None) -> Schedules | None:
    """The coverage of two runs of a kernel. None: one of them says nothing."""
    if one is None or other is None or one.holds:
        return None if one is None or other is None else other
    if other.holds:
        return one
    ended = one.ended or other.ended
    counts = {name: max(getattr(one, name), getattr(other, name)) for name in ("observations", "outcomes", "possible")}
    return Schedules(False, one.why, one.explored + other.explored, **counts, ended=ended)


def schedule_rows(report: Report, *, whole: bool = True) -> Iterator[str]:
    """Whether the result holds for every schedule, a sentence for each kernel; one for all, where it is the same. `whole`: and why."""
    known = [kernel for kernel in report.kernels if kernel.schedules is not None and kernel.launches]
    found: dict[str, list[KernelSummary]] = {}
    for kernel in known:
        assert kernel.schedules is not None
        found.setdefault(schedule_sentence(kernel.schedules, whole=whole), []).append(kernel)
    for sentence, kernels in found.items():
        names = ", ".join(dict.fromkeys(late.names.kernel_name(kernel.name) for kernel in kernels))
        yield sentence if len(found) == 1 else f"{names}: {sentence}"


# Proofs --------------------------------------------------------------------------------------------------------------------


def proof_rows(report: Report) -> Iterator[str]:
    """`tile: proven for all launches with blocks of 64 x 1 x 1: ...` for each kernel with a proof."""
    for kernel in report.kernels:
        if kernel.proof is not None:
            shape = " x ".join(map(str, kernel.proof.block))
            where = f"{late.names.kernel_name(kernel.name)}: {FOR_ALL} with blocks of {shape}"
            yield f"{where}: {_NO_RACE}{_assumed(kernel.proof)}{_unrecorded(kernel)}"


def unproven(report: Report) -> list[str]:
    """The kernels that ran and have no proof."""
    ran = [each.name for each in report.kernels if each.launches and each.proof is None]
    return [*map(late.names.kernel_name, dict.fromkeys(ran)), *(each.name for each in report.uninstrumented)]


def _assumed(proof: AllLaunchesProof) -> str:
    """The assumptions, in parentheses."""
    if not proof.checked:
        return " (consan prove prints what it assumes)"
    held = ", ".join(("arrays do not overlap", "integers do not overflow", *proof.relations))
    return f" (checked at each launch: {held}; assumed: {'; '.join(proof.assumptions)})"


def _unrecorded(kernel: KernelSummary) -> str:
    some, whole = kernel.proven_launches, plural(kernel.launches, "launch", "launches")
    return f"; {some:,} of {whole} needed no record" if some else ""
