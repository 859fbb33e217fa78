"""The report for people, drawn with rich: each finding with both places in the source, then what the verdict stands on.

A terminal gets colour and box characters in its own width; everything else gets plain ASCII at a fixed width, so that
logs, pipes and goldens are stable. Nothing is decided here: order, wording and verdict come from the model.

Not done: syntax colours in excerpts (they would fight with the marks of (1) and (2)), and shortening of long kernel
names (a shortened name cannot be pasted into --kernel-name).
"""

from __future__ import annotations

import io
import os
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any, Final

from rich.console import Console, OverflowMethod
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from consan.reports.kinds import place
from consan.reports.model import CLEAN, INCOMPLETE, VIOLATIONS, Access, Buffer, Finding, Frame, Report, plural
from consan.reports.sources import Excerpt, Sources

PLAIN_WIDTH: Final = 100
MAX_WIDTH: Final = 120
MIN_WIDTH: Final = 60
MAX_WAITS: Final = 8  # lines about who waits where


@dataclass(frozen=True)
class Glyphs:
    """The characters that differ between a terminal and a plain file."""

    rule: str
    bar: str
    top: str
    bottom: str
    caret: str
    dot: str


ASCII: Final = Glyphs(rule="=", bar="|", top="-->", bottom="=", caret="^", dot=", ")
UNICODE: Final = Glyphs(rule="\u2501", bar="\u2502", top="\u256d\u2500", bottom="\u251c\u2500", caret="\u2594", dot=" \u00b7 ")

# Styles by what is shown; the two accesses keep their colours through title, excerpt and label.
SEVERITY_STYLE: Final = {"error": "bold red", "warning": "bold yellow", "note": "bold blue"}
VERDICT_STYLE: Final = {VIOLATIONS: "bold red", INCOMPLETE: "bold yellow", CLEAN: "bold green"}
MARK_STYLE: Final = ("bold cyan", "bold magenta")
LABEL_STYLE: Final = {"missing": "bold yellow", "fix": "bold green"}


def render(report: Report, *, stored: str | None = None) -> str:
    """Plain text: ASCII, no colour, PLAIN_WIDTH columns. `stored` is the file that holds the run, if any."""
    out = io.StringIO()
    _Printer(_console(out, PLAIN_WIDTH, plain=True), ASCII, report).report(stored)
    # Trailing blanks come from table cells; they would make goldens and diffs noisy.
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def show(report: Report, file: IO[str], *, stored: str | None = None) -> None:
    """To a stream: coloured when it is a terminal that wants it, else what `render` gives."""
    if not _is_terminal(file):
        file.write(render(report, stored=stored))
        return
    width = max(MIN_WIDTH, min(_console(file, None, plain=False).width, MAX_WIDTH))
    _Printer(_console(file, width, plain=False), UNICODE if _speaks_unicode(file) else ASCII, report).report(stored)


def _console(file: IO[str], width: int | None, *, plain: bool) -> Console:
    return Console(
        file=file,
        width=width,
        color_system=None if plain else "auto",
        force_terminal=False if plain else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )


def _is_terminal(file: IO[str]) -> bool:
    return bool(getattr(file, "isatty", lambda: False)()) and os.environ.get("TERM", "") != "dumb"


def _speaks_unicode(file: IO[str]) -> bool:
    return "utf" in (getattr(file, "encoding", "") or "").lower()


class _Printer:
    """One pass over a report. Methods are in the order in which they print."""

    def __init__(self, console: Console, glyphs: Glyphs, report: Report) -> None:
        self._console = console
        self._glyphs = glyphs
        self._report = report
        self._sources = Sources(report)

    def report(self, stored: str | None) -> None:
        """Everything."""
        for index, finding in enumerate(self._report.active, 1):
            self._finding(finding, index)
        self._summary(stored)

    # --- a finding ---

    def _finding(self, finding: Finding, index: int) -> None:
        self._title(finding, index)
        self._console.print(Padding(Text(self._plain(_sentence(finding.message))), (0, 0, 0, 2)))
        self._line()
        for number, access in enumerate(finding.accesses):
            self._access(access, number)
        self._rows(self._facts(finding), indent=2)
        self._line()

    def _title(self, finding: Finding, index: int) -> None:
        style = SEVERITY_STYLE[finding.severity]
        hazard = f"{finding.hazard} " if finding.hazard else ""
        title = Text.assemble(
            (self._glyphs.rule * 2 + " ", style),
            (f"{finding.severity}[{finding.kind}]", style),
            (f": {hazard}in kernel ", "bold"),
            (self._plain(finding.kernel), "bold underline" if self._console.is_terminal else "bold"),
        )
        tail = f" {index}/{len(self._report.active)} " + self._glyphs.rule * 2
        filler = max(3, self._console.width - title.cell_len - len(tail) - 1)
        self._line(title.append(" " + self._glyphs.rule * filler + tail, style))

    def _access(self, access: Access, number: int) -> None:
        mark, style = f"({number + 1})", MARK_STYLE[min(number, 1)]
        self._line(Text.assemble("  ", (mark, style), " ", (access.role, "bold"), f"  {access.op}"))
        excerpt = self._sources.excerpt(access)
        gutter = max((len(str(line)) for line, _, _ in excerpt.lines), default=3) if excerpt else 3
        gutter = max(gutter, 4)
        self._line(Text.assemble(" " * (gutter + 3), (self._glyphs.top, style), " ", (self._place(access), "bold")))
        for line in self._excerpt(excerpt, gutter, f"{mark} {access.role}", style) if excerpt else ():
            self._line(line, overflow="ellipsis" if self._glyphs is UNICODE else "crop")
        for text in (self._who(access), self._what(access), *map(self._frame, access.inlined)):
            if text:
                self._line(Text.assemble(" " * (gutter + 3), (self._glyphs.bottom, style), " ", self._plain(text)))
        self._line()

    def _excerpt(self, excerpt: Excerpt, gutter: int, label: str, style: str) -> Iterator[Text]:
        for number, text, hit in excerpt.lines:
            shown = self._plain(text)
            tone = "bold" if hit else "dim"
            yield Text.assemble((f"  {number or '':>{gutter}} {self._glyphs.bar} ", tone), (shown, "" if hit else tone))
            if hit:
                # A line that is too long is cut: the mark ends with it and keeps its label.
                room = self._console.width - gutter - 5 - excerpt.caret - len(label) - 1
                carets = " " * excerpt.caret + self._glyphs.caret * max(1, min(excerpt.width, room))
                yield Text.assemble((f"  {'':>{gutter}} {self._glyphs.bar} ", "dim"), (f"{carets} {label}", style))

    def _place(self, access: Access) -> str:
        if not access.line:
            return self._plain(f"PTX line {access.ptx_line}")
        column = f":{access.column}" if access.column else ""
        return self._plain(f"{_short(access.file)}:{access.line}{column}") + (f" (PTX line {access.ptx_line})" if access.ptx_line else "")

    def _who(self, access: Access) -> str:
        lane = "" if access.lane is None else f" lane {access.lane}"
        parts = (
            access.thread and f"thread {_triple(access.thread)}",
            None if access.warp is None else f"warp {access.warp}{lane}",
            access.block and f"CTA {_triple(access.block)}",
            None if access.cluster_rank is None else f"cluster rank {access.cluster_rank}",
        )
        return self._glyphs.dot.join(part for part in parts if part)

    def _what(self, access: Access) -> str:
        parts = (
            _range(access),
            f"{access.proxy} proxy",
            *_async_parts(access),
        )
        return self._glyphs.dot.join(parts)

    def _frame(self, frame: Frame) -> str:
        return (f"in {frame.function}, " if frame.function else "") + f"inlined at {_short(frame.file)}:{frame.line}:{frame.column}"

    def _facts(self, finding: Finding) -> Iterator[tuple[str, str]]:
        yield "missing", finding.missing
        yield "fix", finding.fix
        if finding.ctas:
            yield "seen", f"{plural(finding.count, 'time')} in {plural(finding.ctas, 'CTA')}"
        else:
            yield "seen", f"in the text of the kernel, launched {plural(finding.count, 'time')}"
        if finding.policy != "default":
            yield "policy", f"{finding.policy}: shipped code leaves this out, a strict reading of the ISA does not"
        if finding.buffer:
            yield "bytes", _bytes(finding.buffer)
        if finding.barrier:
            yield "barrier", _dict_phrase(finding.barrier)
        groups = _grouped(finding.waiters)
        for group in groups[:MAX_WAITS]:
            yield "waits", _waiters(group)
        if len(groups) > MAX_WAITS:
            yield "waits", f"and {plural(sum(map(len, groups[MAX_WAITS:])), 'warp')} more; the JSON report lists them all"

    # --- the end ---

    def _summary(self, stored: str | None) -> None:
        report = self._report
        style = VERDICT_STYLE[report.verdict]
        head = f"{self._glyphs.rule * 2} verdict: {report.verdict} "
        self._line(Text(head + self._glyphs.rule * max(3, self._console.width - len(head)), style))
        rows, commands = list(self._summary_rows()), list(self._commands(stored))
        width = max(len(label) for label, _ in (*rows, *commands))
        self._rows(rows, indent=2, width=width)
        last = ""
        for label, command in commands:
            shown = "" if label == last else f"{label}:"
            text = Text.assemble((f"  {shown:<{width + 1}}  ", "dim"), self._plain(command))
            # Not wrapped: a command is there to be copied, and a line break would end it.
            self._console.print(text, soft_wrap=True)
            last = label

    def _summary_rows(self) -> Iterator[tuple[str, str]]:
        report = self._report
        yield "found", _found(report)
        for finding in report.findings:
            if finding.suppressed:
                yield "suppressed", _suppressed(finding)
        yield "ran", _ran(report)
        yield "checked", ", ".join(report.checked) or "nothing"
        for reason in report.incomplete:
            yield "not checked", reason
        for kernel in report.uninstrumented:
            why = f": {kernel.reason}" if kernel.reason else ""
            yield "not instrumented", f"{kernel.name} ({plural(kernel.launches, 'launch', 'launches')}){why}"
        for note in report.notes:
            yield "note", note
        yield "seed", f"{report.seed}" + ("" if report.policy == "default" else f", policy {report.policy}")
        if report.exit:
            yield "program", f"ended with status {report.exit}"

    def _commands(self, stored: str | None) -> Iterator[tuple[str, str]]:
        if self._report.command:
            yield "reproduce", shlex.join(self._report.command)
        if stored:
            yield "stored run", stored
            yield "next", shlex.join(("consan", "report", stored))
        for kind in dict.fromkeys(finding.kind for finding in self._report.active):
            yield "explain", f"consan explain {kind}"

    # --- printing ---

    def _rows(self, rows: Iterable[tuple[str, str]], indent: int, width: int = 0) -> None:
        """Labels in a column of their own, texts wrapped beside them; a repeated label is printed once."""
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold", ratio=1)
        last = ""
        for label, text in rows:
            if not text:
                continue
            tag = "" if label == last else f"{label}:"
            shown = Text(f"{'':{indent}}{tag:<{width + 1}}", LABEL_STYLE.get(label, "dim"))
            table.add_row(shown, Text(self._plain(text)))
            last = label
        self._console.print(table)

    def _line(self, text: Text | None = None, overflow: OverflowMethod = "fold") -> None:
        """One line; names and paths fold, source lines are cut: a folded one would tear its carets off."""
        self._console.print(text or Text(), no_wrap=overflow != "fold", overflow=overflow)

    def _plain(self, text: str) -> str:
        """Text that the stream can take: in ASCII every other character becomes one '?', which keeps columns in place."""
        return text if self._glyphs is UNICODE else text.encode("ascii", "replace").decode("ascii")


def _range(access: Access) -> str:
    if access.bytes is None:
        return "registers" if access.space == "register" else f"{access.space} memory"
    begin, end = access.bytes
    if access.space == "shared":
        return f"shared bytes {begin}..{end - 1}"
    return f"{access.space} address {begin:#x}, {plural(end - begin, 'byte')}"


# What is said of a waiting warp, in this order; other keys follow as they are.
_WHO: Final = ("warp", "block", "thread", "lanes")
_WAITER_KEYS: Final = (*_WHO, "why", "file", "line", "column", "ptx_line", "ptx")


def _grouped(waiters: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Waiters that differ in who they are only."""
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
    lanes = [waiter["lanes"].bit_count() for waiter in group if isinstance(waiter.get("lanes"), int)]
    if lanes:
        parts.append(plural(sum(lanes), "lane"))
    if first.get("why") and first["why"] not in first:
        parts.append(str(first["why"]))
    rest = _dict_phrase({name: value for name, value in first.items() if name not in _WAITER_KEYS})
    return ", ".join(filter(None, (*parts, rest, _waiter_place(first))))


def _warps(group: list[dict[str, Any]]) -> str:
    """`warp 3`, `warps 0, 1, 4 to 7`, or how many, where they are of several CTAs."""
    numbers = sorted({int(waiter["warp"]) for waiter in group})
    if len(numbers) != len(group):
        return plural(len(group), "warp")
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    shown = [f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return f"warp{'s' * (len(numbers) > 1)} {', '.join(shown)}"


def _waiter_place(waiter: dict[str, Any]) -> str:
    if waiter.get("line"):
        return f"at {_short(str(waiter.get('file', '')))}:{waiter['line']}" + (f":{waiter['column']}" if waiter.get("column") else "")
    return f"at PTX line {waiter['ptx_line']}: {waiter.get('ptx', '')}" if waiter.get("ptx_line") else ""


def _async_parts(access: Access) -> Iterator[str]:
    action = access.asynchronous
    if action is None:
        return
    named = (("group", action.group), ("mbarrier at", action.barrier), ("phase", action.phase))
    yield " ".join([action.kind, *(f"{name} {value}" for name, value in named if value is not None)])


def _triple(value: tuple[int, int, int]) -> str:
    return "({},{},{})".format(*value)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("." if text and not text.endswith(".") else "")


def _short(file: str) -> str:
    """Relative when the file is below the working directory: shorter, and still a path that an editor opens."""
    here = os.getcwd().rstrip(os.sep) + os.sep
    return file[len(here) :] if file.startswith(here) else file


def _bytes(buffer: Buffer) -> str:
    memory = f"{buffer.space} memory"
    where = memory if buffer.name in ("", memory) else f"{buffer.name} ({memory})"
    return f"{buffer.offset}..{buffer.offset + buffer.bytes - 1} of {where}"


def _dict_phrase(data: dict[str, Any]) -> str:
    return ", ".join(f"{name} {_value(value)}" for name, value in data.items() if value is not None)


def _value(value: object) -> str:
    return f"({','.join(map(str, value))})" if isinstance(value, list | tuple) else str(value)


def _suppressed(finding: Finding) -> str:
    """`data-race in kernel k, k.cu:5 and k.cu:9: REASON (k.cu:5)`."""
    assert finding.suppressed is not None
    where = " and ".join(dict.fromkeys(place(access) for access in finding.accesses))
    at = f", {where}" if where else ""
    return f"{finding.kind} in kernel {finding.kernel}{at}: {finding.suppressed.reason} ({_short(finding.suppressed.by)})"


def _found(report: Report) -> str:
    counts = [plural(report.count(severity), severity) for severity in SEVERITY_STYLE if report.count(severity)]
    return ", ".join(counts) or "nothing"


def _ran(report: Report) -> str:
    launches = sum(kernel.launches for kernel in report.kernels)
    memory = sum(kernel.memory_sites for kernel in report.kernels)
    sync = sum(kernel.sync_sites for kernel in report.kernels)
    return (
        f"{plural(len(report.kernels), 'kernel')}, {plural(launches, 'launch', 'launches')} on {report.device}; "
        f"{memory:,} memory and {sync:,} synchronisation instructions watched"
    )
