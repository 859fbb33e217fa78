"""Short phrases about findings and runs, shared by the text and the HTML page; those about one access are in `accesses`.

Only wording is decided here; what a report prints of it, `levels` decides.

Kernel names are not shortened: a shortened name cannot be pasted into --kernel-name.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from consan.reports.counts import plural, runs, seen, some
from consan.reports.formats.accesses import short
from consan.reports.formats.levels import DETAILS, LISTED, PARTS, ReportLevel
from consan.reports.model import (
    CLEAN,
    EXIT_INCOMPLETE,
    EXIT_VIOLATIONS,
    SEVERITIES,
    VIOLATIONS,
    Buffer,
    Cost,
    Finding,
    KernelSummary,
    Report,
)
from consan.reports.source.names import kernel_name
from consan.reports.verdict.coverage import proof_rows, schedule_rows, unproven
from consan.reports.verdict.speaking.causes import causes
from consan.reports.words.values import outcomes_sentence, torn_sentence, value_sentence
from consan.reports.words.verified import sentence_of
from consan.reports.words.wording import place

UNOPTIMIZED: Final = (
    "found without optimisation: the compiler has removed an access of this race from the kernel as it ran; another compiler may not"
    " (--unoptimized off leaves this text out)"
)


def facts(finding: Finding, level: ReportLevel = DETAILS) -> Iterator[tuple[str, str]]:
    """Facts of a finding beside its accesses: (label, text). Texts may be empty. `level`: how many items are listed."""
    yield "schedule", "" if finding.seed is None else f"only another schedule shows this; --device cpu --seed {finding.seed} repeats it"
    yield "text", UNOPTIMIZED if finding.unoptimized else ""
    yield "value", value_sentence(finding.value) if finding.value is not None else ""
    yield "value", torn_sentence(finding)
    yield "outcomes", outcomes_sentence(finding.outcomes) if finding.outcomes is not None and finding.outcomes.output else ""
    yield "missing", finding.missing
    yield "fix", finding.fix
    if finding.verified is not None:
        yield "verified", sentence_of(finding.verified)
    if kernel_name(finding.kernel) != finding.kernel:
        yield "kernel", finding.kernel
    if finding.ctas:
        yield "seen", seen(finding)
    else:
        yield "seen", f"in the text of the kernel, launched {plural(finding.count, 'time')}"
    if finding.policy != "default":
        yield "policy", f"{finding.policy}: shipped code leaves this out, a strict reading of the ISA does not"
    if finding.buffer:
        yield "bytes", _bytes(finding.buffer) + (", and perhaps more" if _first_seen(finding) else "")
    if finding.barrier:
        yield "barrier", _dict_phrase(finding.barrier)
    groups, most = _grouped(finding.waiters), LISTED[level]
    for group in groups[:most]:
        yield "waits", _waiters(group)
    if len(groups) > most:
        yield "waits", f"and {plural(sum(map(len, groups[most:])), 'warp')} more; the JSON report lists them all"


MAX_NAMES = 3  # kernels that a line names


def summary(report: Report, *, notes: bool = True, level: ReportLevel = DETAILS) -> Iterator[tuple[str, str]]:
    """The facts behind the verdict: (label, text). `notes`: findings of severity note are shown in full. `level`: of what holds anyway."""
    yield "found", _found(report, notes)
    for finding in report.findings:
        if finding.suppressed:
            yield "suppressed", _suppressed(finding)
    yield "ran", _ran(report)
    if recorded := _recorded(report):
        yield "recorded", recorded
    if outer := _outer(report):
        yield "global", outer
    yield from (("annotated", f"{kernel_name(each.name)}: {_annotated(each)}") for each in report.kernels if each.annotations)
    yield "checked", ", ".join(report.checked) or "nothing"
    for area in report.not_checked:
        yield "not checked", area
    for reason in report.incomplete:
        yield "incomplete", reason
    for kernel in report.uninstrumented:
        why = f": {kernel.reason}" if kernel.reason else ""
        yield "not instrumented", f"{kernel.name} ({plural(kernel.launches, 'launch', 'launches')}){why}"
    yield from (("schedule", sentence) for sentence in schedule_rows(report, whole=PARTS["why it holds"] <= level))
    yield from (("proof", sentence) for sentence in proof_rows(report))
    for note in report.notes:
        yield "note", note
    yield "seed", f"{report.seed}" + ("" if report.policy == "default" else f", policy {report.policy}")
    if report.cost is not None:
        yield "cost", _cost(report.cost)
    yield from _statuses(report)


def _cost(cost: Cost) -> str:
    memory = f"; GPU memory {-(-cost.gpu_bytes >> 20):,} MiB" if cost.gpu_bytes else ""
    return f"consan's own time: {cost.seconds:,.1f} s of {cost.elapsed:,.1f} s{memory}"


def _statuses(report: Report) -> Iterator[tuple[str, str]]:
    """How the program ended, and why the status of the command is neither that nor 66 for errors."""
    if report.exit:
        yield "program", f"ended with status {report.exit}"
    if why := _status(report):
        yield "status", why


def _status(report: Report) -> str:
    if report.status == EXIT_INCOMPLETE and report.verdict == CLEAN and not report.exit:
        return f"{EXIT_INCOMPLETE}, because there is no proof for all launches of {some(unproven(report), 'kernel')}"
    if report.status == EXIT_INCOMPLETE and not report.exit:
        return f"{EXIT_INCOMPLETE}, because the verdict is incomplete (--allow-incomplete gives 0)"
    if report.status != EXIT_VIOLATIONS or report.verdict == VIOLATIONS:
        return ""
    warnings = (finding for finding in report.active if finding.severity == "warning")
    kinds = Counter(f"warning[{finding.kind}] in kernel {kernel_name(finding.kernel)}" for finding in warnings)
    counted = [f"{what} ({number} times)" if number > 1 else what for what, number in kinds.items()]
    more = [f"{len(counted) - MAX_NAMES} more"] if len(counted) > MAX_NAMES else []
    return f"{EXIT_VIOLATIONS}, because --strict counts warnings: {', '.join([*counted[:MAX_NAMES], *more])}"


def commands(report: Report, stored: str | None = None, *, notes: bool = True, level: ReportLevel = DETAILS) -> Iterator[tuple[str, str]]:
    """Commands to run next: (label, command); below DETAILS, how to see all."""
    if report.command:
        yield "reproduce", shlex.join(report.command)
    if stored:
        yield "stored run", stored
        yield "next", shlex.join(("consan", "report", stored))  # `details` has it, too
    for kind in dict.fromkeys(finding.kind for finding in report.shown(notes=notes)):
        yield "explain", f"consan explain {kind}"
    if level < DETAILS:
        yield "details", _whole(report, stored)


def _whole(report: Report, stored: str | None) -> str:
    """How to see all of the report."""
    if stored:
        return shlex.join(("consan", "report", stored, "--details"))
    if not report.command:
        return "print(consan.reports.render(report, details=True))"
    return f"{_option(report, 'details')} shows the lines around each place, warps and lanes, and what was checked"


def _option(report: Report, name: str) -> str:
    """An option as the command that made the report spells it."""
    return f"--consan-{name}" if report.command[:1] == ("pytest",) else f"--{name}"


# Facts about a waiting warp, in this order. Other keys follow unchanged.
_WHO: Final = ("warp", "block", "thread", "lanes")
_WAITER_KEYS: Final = (*_WHO, "threads", "cluster_rank", "rank", "why", "file", "line", "column", "ptx_line", "ptx")


def _grouped(waiters: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Group waiters that differ only in their threads."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for waiter in waiters:
        groups.setdefault(repr([item for item in sorted(waiter.items()) if item[0] not in _WHO]), []).append(waiter)
    return list(groups.values())


def _waiters(group: list[dict[str, Any]]) -> str:
    """`warps 0 to 3 of CTA (0,0,0), 128 lanes: running at k.cu:2:5`."""
    first = group[0]
    parts = [_warps(group)] if first.get("warp") is not None else []
    if first.get("thread") is not None:
        parts.append(f"thread {_value(first['thread'])}")
    blocks = {str(waiter["block"]) for waiter in group if waiter.get("block") is not None}
    if blocks:
        parts.append(f"CTA {_value(first['block'])}" if len(blocks) == 1 else plural(len(blocks), "CTA"))
    parts += [f"rank {first[key]}" for key in ("cluster_rank", "rank") if first.get(key) is not None]
    lanes = [waiter["lanes"].bit_count() for waiter in group if isinstance(waiter.get("lanes"), int)]
    if lanes:
        parts.append(plural(sum(lanes), "lane"))
    if first.get("threads"):
        parts.append(f"{plural(first['threads'], 'thread')} in all")
    if first.get("why") and first["why"] not in first:
        parts.append(str(first["why"]))
    rest = _dict_phrase({name: value for name, value in first.items() if name not in _WAITER_KEYS})
    return ", ".join(filter(None, (*parts, rest, _waiter_place(first))))


def _warps(group: list[dict[str, Any]]) -> str:
    """`warp 3`, `warps 0, 1, 4 to 7`, or their number if they are of several CTAs."""
    numbers = sorted({int(waiter["warp"]) for waiter in group})
    if len(numbers) != len(group):
        return plural(len(group), "warp")
    return f"warp{'s' * (len(numbers) > 1)} {', '.join(runs(numbers))}"


def _waiter_place(waiter: dict[str, Any]) -> str:
    if waiter.get("line"):
        return f"at {short(str(waiter.get('file', '')))}:{waiter['line']}" + (f":{waiter['column']}" if waiter.get("column") else "")
    return f"at PTX line {waiter['ptx_line']}: {waiter.get('ptx', '')}" if waiter.get("ptx_line") else ""


def sentence(text: str) -> str:
    """Add a capital and a full stop."""
    return text[:1].upper() + text[1:] + ("." if text and not text.endswith(".") else "")


def _annotated(kernel: KernelSummary) -> str:
    """The annotations of a kernel, with paths below the working directory made relative."""
    return ", ".join(kernel.annotations).replace(os.getcwd().rstrip(os.sep) + os.sep, "")


_OF_CTA: Final = " of the CTA of rank "


def _first_seen(finding: Finding) -> bool:
    """Whether only the first bytes are known: an operation reports the first conflict in its range."""
    action = finding.pair[-1].asynchronous if finding.pair else None
    if finding.buffer and finding.count > 1 and _OF_CTA in finding.buffer.name:  # `sides.buffer_of`: of several CTAs the first access
        return finding.buffer.bytes == min((each.bytes[1] - each.bytes[0] for each in finding.pair if each.bytes), default=0)
    return finding.kind != "lifetime" and action is not None and action.kind != "cp.async"


def _bytes(buffer: Buffer) -> str:
    memory = f"{buffer.space} memory"
    bytes_ = f"{buffer.offset}..{buffer.offset + buffer.bytes - 1}"
    if buffer.name in ("", memory):
        return f"{bytes_} of {memory}"
    return f"{bytes_} of {buffer.name}" if memory in buffer.name else f"{bytes_} of {memory} ({buffer.name})"


def _dict_phrase(data: dict[str, Any]) -> str:
    return ", ".join(f"{name} {_value(value)}" for name, value in data.items() if value is not None)


def _value(value: object) -> str:
    return f"({','.join(map(str, value))})" if isinstance(value, list | tuple) else str(value)


def _suppressed(finding: Finding) -> str:
    """`data-race in kernel k, k.cu:5 and k.cu:9: REASON (k.cu:5)`."""
    assert finding.suppressed is not None
    where = " and ".join(dict.fromkeys(place(access) for access in finding.pair))
    at = f", {where}" if where else ""
    return f"{finding.kind} in kernel {kernel_name(finding.kernel)}{at}: {finding.suppressed.reason} ({short(finding.suppressed.by)})"


def hidden_notes(report: Report) -> str:
    """`2 notes (--notes shows them)`; empty where there are none."""
    return notes_hidden(report.count("note"), _option(report, "notes"))


def notes_hidden(number: int, option: str = "--notes") -> str:
    """As `hidden_notes`, for a given number of notes."""
    return f"{plural(number, 'note')} ({option} shows {'it' if number == 1 else 'them'})" if number else ""


def _found(report: Report, notes: bool) -> str:
    severities = [severity for severity in SEVERITIES if notes or severity != "note"]
    counts = [plural(report.count(severity), severity) for severity in severities if report.count(severity)]
    counts += ["the verdict counts errors only"] if report.verdict == CLEAN and report.count("warning") else []
    shown = report.shown(notes=notes)
    places = len(causes(shown))
    shared = f", which have {plural(places, 'cause')}" if places < len(shown) else ""
    return (", ".join(filter(None, (*counts, "" if notes else hidden_notes(report)))) or "nothing") + shared


def _recorded(report: Report) -> str:
    """`4,096 CTAs in 2 launches of 1 kernel, 3 distinct histories replayed`; and the kernels with called hooks, if some have."""
    kernels = [kernel for kernel in report.kernels if kernel.ctas]
    names = ("ctas", "launches", "histories", "recalled")
    ctas, launches, histories, recalled = (sum(getattr(kernel, name) for kernel in kernels) for name in names)
    how = f", {recalled:,} of them by earlier runs" if recalled else ""
    replayed = f"{plural(histories, 'distinct history', 'distinct histories')} replayed{how}"
    launches -= sum(kernel.proven_launches for kernel in kernels)
    where = f"{plural(launches, 'launch', 'launches')} of {plural(len(kernels), 'kernel')}"
    hooked = [kernel_name(kernel.name) for kernel in report.kernels if kernel.launches and kernel.engine == "inline"]
    more = [f"{len(hooked) - MAX_NAMES} more"] if len(hooked) > MAX_NAMES else []
    others = f"; with called hooks: {', '.join(hooked[:MAX_NAMES] + more)}" if hooked else ""
    return f"{plural(ctas, 'CTA')} in {where}, {replayed}{others}" if kernels else ""


def _outer(report: Report) -> str:
    """`4,096 accesses; 96 touch bytes that another thread of the launch writes, and were compared`: the others cannot race.

    `512 accesses, proven free of races before their launch`; `...; 512 were proven free of races before their launch` if not all were.
    """
    names = ("global_accesses", "global_compared", "global_proven")
    accesses, compared, proven = (sum(getattr(kernel, name) for kernel in report.kernels) for name in names)
    if not accesses:
        return ""
    number = plural(accesses, "access", "accesses")
    if proven == accesses:
        return f"{number}, proven free of races before their launch"
    met = (
        f"{compared:,} touch bytes that another thread of the launch writes, and were compared"
        if compared
        else "none touches bytes that another thread of the launch writes"
    )
    proven_words = f"; {proven:,} were proven free of races before their launch" if proven else ""
    return f"{number}; {met}{proven_words}"


def _ran(report: Report) -> str:
    launches = sum(kernel.launches for kernel in report.kernels)
    memory = sum(kernel.memory_sites for kernel in report.kernels)
    sync = sum(kernel.sync_sites for kernel in report.kernels)
    where = f" on {report.device}" if report.device else ""
    return (
        f"{plural(len(report.kernels), 'kernel')}, {plural(launches, 'launch', 'launches')}{where}; "
        f"{memory:,} shared-memory and {sync:,} synchronisation instructions watched"
    )
