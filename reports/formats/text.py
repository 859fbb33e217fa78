"""The report for people, drawn with rich: each finding with both places in the source, then what the verdict rests on.

By default it fills a screen, with `details` it says all: `levels` has the level of each part.

A terminal gets colour, box characters and its own width. Everything else gets plain ASCII at a fixed width, so that
logs, pipes and goldens are stable. Order, wording and verdict come from the model.

Excerpts have no syntax colours: they would hide the marks of (1) and (2).
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import IO, Final

from rich.console import Console, OverflowMethod
from rich.text import Text

from consan import late
from consan.dataclass import dataclass
from consan.reports.counts import plural
from consan.reports.formats import accesses, look, phrases
from consan.reports.formats.levels import DETAILS, LISTED, SCREEN, ReportLevel, kept
from consan.reports.formats.visible import visible_item
from consan.reports.model import CLEAN, INCOMPLETE, VIOLATIONS, Access, Finding, Report
from consan.reports.source.names import is_operation, kernel_name
from consan.reports.source.sources import Excerpt, Sources
from consan.reports.verdict.speaking import consequences
from consan.reports.verdict.speaking.causes import Cause, causes

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

# Styles by meaning. The accesses and the culprit keep their colours through title, excerpt and label.
SEVERITY_STYLE: Final = {"error": "bold red", "warning": "bold yellow", "note": "bold blue"}
VERDICT_STYLE: Final = {VIOLATIONS: "bold red", INCOMPLETE: "bold yellow", CLEAN: "bold green"}
MARK_STYLE: Final = ("bold cyan", "bold magenta", "bold yellow")
LABEL_STYLE: Final = {"missing": "bold yellow", "fix": "bold green"}


@dataclass(frozen=True)
class Shown:
    """How much is printed. `notes`: also findings of severity note. `timeline`: draw each finding. `details`: all of the parts.

    `quiet`: only findings and verdict.
    """

    notes: bool = False
    timeline: bool = False
    details: bool = False
    quiet: bool = False

    @property
    def level(self) -> ReportLevel:
        """Which parts are printed."""
        return DETAILS if self.details else SCREEN


def render(report: Report, *, stored: str | None = None, colored: bool = False, encoding: str = "ascii", **shown: bool) -> str:
    """Text in PLAIN_WIDTH columns, with the signs of ASCII. `stored`: the file with the run, if any. `shown`: the switches of `Shown`.

    `encoding`: what sources and names may have; each other character of theirs becomes a '?', which keeps columns aligned.
    """
    out = io.StringIO()
    _Printer(console(out, PLAIN_WIDTH, colored=colored), ASCII, encoding, visible_item(report), Shown(**shown)).report(stored)
    # Table cells leave trailing blanks, which make goldens and diffs noisy.
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def show(report: Report, file: IO[str], *, stored: str | None = None, **shown: bool) -> None:
    """Print to a stream: a terminal gets its own width and characters, all else the text of `render`. `shown`: the switches of `Shown`."""
    colored, encoding, shown = look.wants_color(file), _encoding(file), {"quiet": look.quiet(), **shown}
    if not look.is_terminal(file):
        file.write(render(report, stored=stored, colored=colored, encoding=encoding, **shown))
        return
    width = max(MIN_WIDTH, min(console(file, colored=colored).width, MAX_WIDTH))
    glyphs = UNICODE if _speaks_unicode(file) else ASCII
    _Printer(console(file, width, colored=colored), glyphs, encoding, visible_item(report), Shown(**shown)).report(stored)


def console(file: IO[str], width: int | None = None, *, colored: bool) -> Console:
    """A console that does not change text. Colours that a terminal does not define are the standard ones, as in a pipe."""
    terminal = look.is_terminal(file)
    return Console(
        file=file,
        width=width,
        color_system=("auto" if terminal else "standard") if colored else None,
        force_terminal=colored or None if terminal else colored,
        no_color=False,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )


def _speaks_unicode(file: IO[str]) -> bool:
    return "utf" in _encoding(file).lower()


def _encoding(file: IO[str]) -> str:
    return getattr(file, "encoding", None) or "ascii"


def _wrapped(text: str, width: int) -> list[str]:
    """Wrap lines between words only: a long path stays whole."""
    return textwrap.wrap(text, max(width, 20), break_long_words=False, break_on_hyphens=False)


class _Printer:
    """Prints one report. Methods are in the order of printing."""

    def __init__(self, console: Console, glyphs: Glyphs, encoding: str, report: Report, shown: Shown) -> None:
        self._encoding = encoding
        self._console = console
        self._glyphs = glyphs
        self._report = report
        self._how = shown
        self._level = shown.level
        self._shown = report.shown(notes=shown.notes)
        self._sources = Sources(report)

    def report(self, stored: str | None) -> None:
        """Everything."""
        shown = causes(self._shown)
        numbers = {id(finding): number for number, cause in enumerate(shown, 1) for finding in cause.all}
        texts = consequences.worded(self._shown, [numbers[id(finding)] for finding in self._shown])
        worded = {id(finding): words for finding, words in zip(self._shown, texts, strict=True)}
        for index, cause in enumerate(shown, 1):
            self._finding(replace(cause, finding=worded[id(cause.finding)]), f" {index}/{len(shown)} ")
        self._summary(stored)

    # --- a finding ---

    def _finding(self, cause: Cause, number_of: str) -> None:
        finding = cause.finding
        self._title(finding, number_of, len(cause.others))
        for line in _wrapped(self._plain(phrases.sentence(finding.message)), self._console.width - 2):
            self._line(Text("  " + line), whole=True)
        if self._level is DETAILS:
            self._line()
        print_access = self._access if self._level is DETAILS else self._access_on_a_screen
        for access in self._sources.waits(finding):
            print_access(access)
        for number, access in enumerate(finding.accesses):
            print_access(access, number)
        if self._how.timeline:
            self._drawing(finding)
        self._rows(kept((*phrases.facts(finding, self._level), *cause.where(LISTED[self._level])), self._level), indent=2)
        self._line()

    def _title(self, finding: Finding, number_of: str, others: int) -> None:
        style = SEVERITY_STYLE[finding.severity]
        hazard = f"{finding.hazard} " if finding.hazard else ""
        title = Text.assemble(
            (self._glyphs.rule * 2 + " ", style),
            (f"{finding.severity}[{finding.kind}]", style),
            (f": {hazard}in {'' if is_operation(finding.kernel) else 'kernel '}", "bold"),
            (self._plain(kernel_name(finding.kernel)), "bold underline" if self._console.is_terminal else "bold"),
            (f" and {plural(others, 'more kernel')}" if others else "", "bold"),
        )
        tail = number_of + self._glyphs.rule * 2
        filler = max(3, self._console.width - title.cell_len - len(tail) - 1)
        self._line(title.append(" " + self._glyphs.rule * filler + tail, style))

    def _access(self, access: Access, number: int | None = None) -> None:
        """An access with its number, or a place where threads wait, which has none."""
        (mark, style), dot = self._mark(number), self._glyphs.dot
        self._line(self._head(access, mark, style), whole=True)
        excerpt = self._sources.excerpt(access)
        gutter = max((len(str(line)) for line, _, _ in excerpt.lines), default=3) if excerpt else 3
        gutter = max(gutter, 4)
        where = Text.assemble(" " * (gutter + 3), (self._glyphs.top, style), " ", (self._plain(accesses.where(access)), "bold"))
        self._line(where, whole=True)
        for line in self._excerpt(excerpt, gutter, f"{mark}{access.role}", style) if excerpt else ():
            self._line(line, overflow="ellipsis" if self._glyphs is UNICODE else "crop")
        for text in (accesses.who(access, dot), accesses.what(access, dot), *accesses.chain(access)):
            if text:
                self._line(Text.assemble(" " * (gutter + 3), (self._glyphs.bottom, style), " ", self._plain(text)), whole=True)
        self._line()

    def _access_on_a_screen(self, access: Access, number: int | None = None) -> None:
        """As `_access`, in two lines where they have room: who does what to which bytes, and where, with the line of the source."""
        (mark, style), dot = self._mark(number), self._glyphs.dot
        head = self._head(access, mark, style)
        facts = dot.join(filter(None, (accesses.what(access, dot, self._level), accesses.who(access, dot, self._level))))
        fits = head.cell_len + len(facts) + 2 <= self._console.width
        self._line(head.append(f"  {self._plain(facts)}") if fits else head, whole=True)
        for line in () if fits else _wrapped(self._plain(facts), self._console.width - 6):
            self._line(Text(f"      {line}"), whole=True)
        where = Text.assemble("      ", (self._glyphs.top, style), " ", (self._plain(accesses.where(access, self._level)), "bold"))
        source = self._source_line(access, style)
        fits = where.cell_len + source.cell_len + 1 <= self._console.width
        self._line(where.append(" ").append(source) if fits and source else where, whole=True)
        if source and not fits:
            self._line(Text("     ").append(source), overflow="ellipsis" if self._glyphs is UNICODE else "crop")

    def _source_line(self, access: Access, style: str) -> Text:
        """`| tile[t] = x;`: the line without its indentation; empty if it is not known."""
        excerpt = self._sources.excerpt(access)
        if excerpt is None:
            return Text()
        line = next(text for _, text, hit in excerpt.lines if hit)
        text, start = self._fitted(line.strip(), 7), excerpt.caret - (len(line) - len(line.lstrip())) + 2
        shown = Text(f"{self._glyphs.bar} {text}")
        shown.stylize(style, start, start + excerpt.width)
        return shown

    def _mark(self, number: int | None) -> tuple[str, str]:
        """`(1) ` and its style, for the first access."""
        return ("", "bold") if number is None else (f"({number + 1}) ", MARK_STYLE[min(number, len(MARK_STYLE) - 1)])

    def _head(self, access: Access, mark: str, style: str) -> Text:
        return Text.assemble("  ", (mark, style), (access.role, "bold"), f"  {access.op}")

    def _fitted(self, text: str, gutter: int) -> str:
        """A source line that the stream can encode; cut here where the console would not say that it cuts."""
        shown, space = self._plain(text), self._console.width - gutter
        return shown[: space - 3] + "..." if self._glyphs is ASCII and len(shown) > space else shown

    def _drawing(self, finding: Finding) -> None:
        """The timeline, indented like the rest of the finding."""
        picture = late.timeline.build(finding)
        if picture is None:
            return
        drawing = late.drawing
        strokes = drawing.UNICODE if self._glyphs is UNICODE else drawing.ASCII
        for line, style in drawing.draw(picture, self._console.width - 4, strokes):
            shown = Text("  " + self._plain(line), LABEL_STYLE.get(style, ""))
            for number, colour in enumerate(MARK_STYLE, 1):
                shown.highlight_words([f"({number})"], colour)
            self._line(shown)
        self._line()

    def _excerpt(self, excerpt: Excerpt, gutter: int, label: str, style: str) -> Iterator[Text]:
        for number, text, hit in excerpt.lines:
            shown, tone = self._fitted(text, gutter + 5), "bold" if hit else "dim"
            yield Text.assemble((f"  {number or '':>{gutter}} {self._glyphs.bar} ", tone), (shown, "" if hit else tone))
            if hit:
                # Cut a line that is too long. Its mark is cut with it and keeps its label.
                room = self._console.width - gutter - 5 - excerpt.caret - len(label) - 1
                carets = " " * excerpt.caret + self._glyphs.caret * max(1, min(excerpt.width, room))
                yield Text.assemble((f"  {'':>{gutter}} {self._glyphs.bar} ", "dim"), (f"{carets} {label}", style))

    # --- the end ---

    def _summary(self, stored: str | None) -> None:
        report = self._report
        style = VERDICT_STYLE[report.verdict]
        head = f"{self._glyphs.rule * 2} verdict: {report.verdict} "
        self._line(Text(head + self._glyphs.rule * max(3, self._console.width - len(head)), style))
        if self._how.quiet:
            return
        notes, level = self._how.notes, self._level
        rows = list(kept(phrases.summary(report, notes=notes, level=level), level))
        commands = list(kept(phrases.commands(report, stored, notes=notes, level=level), level))
        width = max(len(label) for label, _ in (*rows, *commands))
        self._rows(rows, indent=2, width=width)
        last = ""
        for label, command in commands:
            shown = "" if label == last else f"{label}:"
            text = Text.assemble((f"  {shown:<{width + 1}}  ", "dim"), self._plain(command))
            self._line(text, whole=True)
            last = label

    # --- printing ---

    def _rows(self, rows: Iterable[tuple[str, str]], indent: int, width: int = 0) -> None:
        """Labels in a column, texts wrapped beside them. A repeated label is printed once."""
        kept = [(label, self._plain(text)) for label, text in rows if text]
        width = max([width, *(len(label) for label, _ in kept)]) + 1
        last = ""
        for label, text in kept:
            tag = "" if label == last else f"{label}:"
            for line in _wrapped(text, self._console.width - indent - width - 2):
                self._line(Text.assemble((f"{'':{indent}}{tag:<{width}}  ", LABEL_STYLE.get(label, "dim")), line), whole=True)
                tag = ""
            last = label

    def _line(self, text: Text | None = None, overflow: OverflowMethod = "fold", *, whole: bool = False) -> None:
        """One line. Names fold; source lines are cut, since a folded line would lose its carets.

        `whole`: never broken. A terminal links `file:line:column`, and a shell takes a command, only without a line break inside.
        """
        if whole:
            self._console.print(text or Text(), soft_wrap=True)
        else:
            self._console.print(text or Text(), no_wrap=overflow != "fold", overflow=overflow)

    def _plain(self, text: str) -> str:
        """Text that the stream can encode."""
        return text.encode(self._encoding, "replace").decode(self._encoding)
