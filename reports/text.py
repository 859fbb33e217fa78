"""The report for people, drawn with rich: each finding with both places in the source, then what the verdict stands on.

A terminal gets colour and box characters in its own width; everything else gets plain ASCII at a fixed width, so that
logs, pipes and goldens are stable. Nothing is decided here: order, wording and verdict come from the model.

Not done: syntax colours in excerpts (they would fight with the marks of (1) and (2)).
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Final

from rich.console import Console, OverflowMethod
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from consan.reports import phrases
from consan.reports.model import CLEAN, INCOMPLETE, VIOLATIONS, Access, Finding, Report
from consan.reports.sources import Excerpt, Sources

PLAIN_WIDTH: Final = 100
MAX_WIDTH: Final = 120
MIN_WIDTH: Final = 60


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

# Styles by what is shown; the accesses and the culprit keep their colours through title, excerpt and label.
SEVERITY_STYLE: Final = {"error": "bold red", "warning": "bold yellow", "note": "bold blue"}
VERDICT_STYLE: Final = {VIOLATIONS: "bold red", INCOMPLETE: "bold yellow", CLEAN: "bold green"}
MARK_STYLE: Final = ("bold cyan", "bold magenta", "bold yellow")
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
        self._console.print(Padding(Text(self._plain(phrases.sentence(finding.message))), (0, 0, 0, 2)))
        self._line()
        for number, access in enumerate(finding.accesses):
            self._access(access, number)
        self._rows(phrases.facts(finding), indent=2)
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
        mark, style, dot = f"({number + 1})", MARK_STYLE[min(number, len(MARK_STYLE) - 1)], self._glyphs.dot
        self._line(Text.assemble("  ", (mark, style), " ", (access.role, "bold"), f"  {access.op}"))
        excerpt = self._sources.excerpt(access)
        gutter = max((len(str(line)) for line, _, _ in excerpt.lines), default=3) if excerpt else 3
        gutter = max(gutter, 4)
        self._line(Text.assemble(" " * (gutter + 3), (self._glyphs.top, style), " ", (self._plain(phrases.where(access)), "bold")))
        for line in self._excerpt(excerpt, gutter, f"{mark} {access.role}", style) if excerpt else ():
            self._line(line, overflow="ellipsis" if self._glyphs is UNICODE else "crop")
        for text in (phrases.who(access, dot), phrases.what(access, dot), *map(phrases.inlined_at, access.inlined)):
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

    # --- the end ---

    def _summary(self, stored: str | None) -> None:
        report = self._report
        style = VERDICT_STYLE[report.verdict]
        head = f"{self._glyphs.rule * 2} verdict: {report.verdict} "
        self._line(Text(head + self._glyphs.rule * max(3, self._console.width - len(head)), style))
        rows, commands = list(phrases.summary(report)), list(phrases.commands(report, stored))
        width = max(len(label) for label, _ in (*rows, *commands))
        self._rows(rows, indent=2, width=width)
        last = ""
        for label, command in commands:
            shown = "" if label == last else f"{label}:"
            text = Text.assemble((f"  {shown:<{width + 1}}  ", "dim"), self._plain(command))
            # Not wrapped: a command is there to be copied, and a line break would end it.
            self._console.print(text, soft_wrap=True)
            last = label

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
