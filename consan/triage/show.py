"""Shows triage documents: tables with rich, and a progress bar. Nothing is computed here.

A terminal gets colour and its own width, everything else plain text at a fixed width. The bar goes to standard error, and only
if that is a terminal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import IO, Final

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from consan.reports.counts import plural
from consan.reports.formats import look, text
from consan.reports.formats.phrases import notes_hidden
from consan.reports.formats.visible import visible_item
from consan.reports.model import VIOLATIONS, Report
from consan.triage.campaign import SCHEMA, summary
from consan.triage.outcome import OK, Json, Outcome
from consan.triage.words import short_opcode

PLAIN_WIDTH: Final = 110
_ROWS: Final = 8  # of results in the table; the document has all
_STYLES: Final = {"error": "bold red", "warning": "bold yellow", "note": "bold blue"}
_REFERENCES: Final = {
    "expected": "right: what --expect says",
    "majority": "right: what more than half of the runs gave, bit for bit (nothing else says what is right)",
    "status": "right: exit status 0",
    "none": "no result has a majority: nothing says what is right",
}
_JUDGED: Final = {True: Text("WRONG", style="bold red"), False: Text("right"), None: Text("-")}


class Bar:
    """A bar on standard error with the results so far and an estimate of the time left."""

    def __init__(self, file: IO[str] | None = None) -> None:
        self._console = Console(file=file or sys.stderr)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"))
        hidden = not self._console.is_terminal or look.quiet()
        self._progress = Progress(
            *columns, TimeRemainingColumn(), TextColumn("{task.fields[seen]}"), console=self._console, disable=hidden, transient=True
        )
        self._task: TaskID | None = None
        self._counts: dict[str, int] = {}

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._progress.stop()

    def begin(self, what: str, total: int | None) -> None:
        """Start a round of runs. None: the number is unknown."""
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._counts = {}
        self._task = self._progress.add_task(what, total=total, seen="")

    def advance(self, outcome: Outcome) -> None:
        """One run is done."""
        for word, holds in (("with errors", outcome.errors), ("wrong", bool(outcome.wrong)), ("failed", outcome.status != OK)):
            self._counts[word] = self._counts.get(word, 0) + holds
        self.say(", ".join(f"{number} {word}" for word, number in self._counts.items() if number), 1)

    def say(self, text: str, done: int = 0) -> None:
        """Show the results so far."""
        if self._task is not None:
            self._progress.update(self._task, advance=done, seen=text)


def console_for(file: IO[str]) -> Console:
    """A console: colour if wanted, fixed width without a terminal."""
    return text.console(file, None if look.is_terminal(file) else PLAIN_WIDTH, colored=look.wants_color(file))


def show_document(document: Json, file: IO[str], *, notes: bool = False) -> None:
    """Show any triage document."""
    document = visible_item(document)
    if document["schema"] == SCHEMA:
        show_stress(document, file, notes=notes)
    else:
        show_schedule(document, file)


def show_stress(document: Json, file: IO[str], *, notes: bool = False) -> None:
    """Show a campaign. Findings of severity note are only counted unless `notes` is set."""
    console = console_for(file)
    seeds = document["seeds"]
    console.print(f"{document['name']}: seeds {seeds['first']} to {seeds['last']} on {document['device'] or 'no device'}")
    if document["partial"]:
        console.print(f"PARTIAL: interrupted after {seeds['done']:,} of {seeds['asked']:,} seeds")
    console.print()
    rows = [row for row in document["findings"] if notes or row["finding"]["severity"] != "note"]
    if rows:
        console.print(_findings(rows))
    if len(rows) < len(document["findings"]):
        console.print(notes_hidden(len(document["findings"]) - len(rows)))
    if document["results"]:
        console.print(_results(document))
    if document["failures"]:
        console.print(_failures(document))
    for area in document.get("not_checked", ()):
        console.print(f"not checked: {area}")
    for reason in document["incomplete"]:
        console.print(f"incomplete: {reason}")
    console.print(Text(f"verdict: {document['verdict']}", style="bold red" if document["verdict"] == VIOLATIONS else "bold"))
    console.print(f"{summary(document)}.")
    console.print(_speed(document))


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.ASCII_DOUBLE_HEAD, show_lines=False)
    for column in columns:
        table.add_column(column, justify="right" if column in ("runs", "95 % interval", "again") else "left", overflow="fold")
    return table


def _findings(rows: Sequence[Json]) -> Table:
    table = _table("findings", "runs", "95 % interval", "again", "kind", "where", "first seeds")
    for row in rows:
        finding = row["finding"]
        kind = Text(f"{finding['severity']}: {finding['kind']}", style=_STYLES[finding["severity"]])
        table.add_row(*_rates(row), kind, where(finding), _seeds(row))
    return table


def where(finding: Json) -> str:
    """A finding's two places, or its waiters."""
    places = finding["accesses"] or finding["waiters"]
    return " / ".join(dict.fromkeys(_place(place) for place in places)) or finding["message"]


def _place(place: Json) -> str:
    line = f"{os.path.basename(place['file'])}:{place['line']}" if place.get("line") else f"PTX line {place.get('ptx_line')}"
    return f"{line} {short_opcode(place['op']) if place.get('op') else place.get('why', '')}".strip()


def _results(document: Json) -> Table:
    table = _table(
        f"results ({_REFERENCES[document['reference']['from']]})", "runs", "95 % interval", "again", "result", "what", "first seeds"
    )
    for row in document["results"][:_ROWS]:
        what = f"ended early: {row['ended']}" if row["ended"] else row["differences"]
        table.add_row(*_rates(row), _JUDGED[row["wrong"]], what or row["result"], _seeds(row))
    others = document["results"][_ROWS:]
    if others:
        table.add_row(f"{sum(row['runs'] for row in others):,}", "", "", "", plural(len(others), "other result"), "")
    return table


def _failures(document: Json) -> Table:
    table = _table("failures of the machinery (in no rate above)", "runs", "status", "what", "first seeds")
    for row in document["failures"]:
        table.add_row(f"{row['runs']:,}", row["status"], row["detail"], _seeds(row))
    return table


def _rates(row: Json) -> tuple[str, str, str]:
    low, high = row["interval"]
    again = row["confirmed"]
    return f"{row['runs']:,} of {row['of']:,}", f"{low:.1%} to {high:.1%}", f"{again['same']} of {again['runs']}" if again else "-"


def _seeds(row: Json) -> str:
    shown = row["seeds"][:3]
    return ", ".join(map(str, shown)) + (", ..." if row["runs"] > len(shown) else "")


def _speed(document: Json) -> str:
    done, seconds = document["seeds"]["done"], document["seconds"]
    speed = f", {done / seconds:.1f} a second" if seconds else ""
    return f"{plural(done, 'seed')} in {seconds:.1f} s{speed} ({document['executor']})"


def show_schedule(document: Json, file: IO[str]) -> None:
    """Show what a failure needs."""
    console = console_for(file)
    search, decisions = document["search"], document["decisions"]
    console.print(f"{document['name']}: {document['failure']['text']}")
    if document["partial"]:
        console.print("PARTIAL: interrupted; some of these may not be needed")
    console.print(
        f"{plural(search['recorded'], 'decision')} of seed {document['seed']} came down to {len(decisions)}"
        f" in {plural(search['runs'], 'run')} ({search['seconds']:.1f} s):\n"
    )
    _sentences(console, document)


def _sentences(console: Console, document: Json) -> None:
    console.print(f"  apart from this, {document['baseline']['words']}" if document["decisions"] else f"  {document['baseline']['words']}")
    for index, decision in enumerate(document["decisions"], 1):
        console.print(f"  {index}. {decision['words']}", soft_wrap=True)
    if not document["decisions"]:
        console.print("  no delay is needed: it fails as it is")
    console.print()


def show_replay(
    document: Json, outcomes: Sequence[Outcome], report: Report, file: IO[str], shown: Mapping[str, bool] | None = None
) -> None:
    """The schedule, the findings of its run and its result. `shown`: how much of the report (`text.Shown`)."""
    console = console_for(file)
    console.print(f"{document['name']}")
    if "decisions" in document:
        _sentences(console, document)
    text.show(report, file, stored=None, **(shown or {}))
    first = outcomes[0]
    if first.differences or first.ended:
        console.print(f"result: {first.differences or 'ended early: ' + first.ended}")
