"""Draws a `Timeline` with characters, for `--timeline`: in ASCII or with box characters, within a given width.

Time runs down, lanes are columns. A step stands to the right of its lane's line, or to the left if there is more room. Text that does
not fit on a line is cut with an ellipsis.
"""

from __future__ import annotations

import textwrap
from typing import Final

from consan.dataclass import dataclass
from consan.reports.timeline.picture import MEMORY_WORDS, Edge, Timeline, TimelineEvent

MISSING: Final = "missing"  # the style of lines that say what is missing


@dataclass(frozen=True)
class Strokes:
    """The characters of a drawing."""

    life: str
    span: str
    node: str
    line: str
    gap: str
    turn_right: str
    turn_left: str
    right: str
    left: str
    up: str
    end: str
    cross: str
    cut: str


ASCII: Final = Strokes("|", "#", "*", "-", ".", "+", "+", ">", "<", "^", "v", "x", "...")
UNICODE: Final = Strokes(
    "\u2502", "\u2588", "\u25cf", "\u2500", "\u254c", "\u251c", "\u2524", "\u25b6", "\u25c0", "\u25b2", "\u25bc", "\u2715", "\u2026"
)


def draw(timeline: Timeline, width: int, strokes: Strokes = ASCII) -> list[tuple[str, str]]:
    """The lines of the picture, each with its style ("" or MISSING)."""
    return _Drawing(timeline, width, strokes).lines()


class _Drawing:
    """Draws from the top. Methods are in the order of drawing."""

    def __init__(self, timeline: Timeline, width: int, strokes: Strokes) -> None:
        self._timeline = timeline
        self._width = width
        self._strokes = strokes
        self._column = max(6, width // len(timeline.lanes))
        self._lines: list[tuple[str, str]] = []
        self._spans: set[int] = set()  # lanes with an open span

    def lines(self) -> list[tuple[str, str]]:
        """All of them: the caption, heads, steps, memory."""
        for line in textwrap.wrap(self._timeline.caption, self._width):
            self._put(line)
        self._heads()
        for index, event in enumerate(self._timeline.events):
            self._step(index, event)
        if self._timeline.gap >= len(self._timeline.events):
            self._band()
        self._put(self._base("end"))
        self._strip()
        return self._lines

    def _put(self, line: str, style: str = "") -> None:
        self._lines.append((line[: self._width].rstrip(), style))

    def _x(self, lane: int) -> int:
        return lane * self._column

    def _base(self, stroke: str = "life") -> str:
        """A row in which nothing happens."""
        row = [" "] * self._width
        for lane in range(len(self._timeline.lanes)):
            row[self._x(lane)] = self._strokes.span if lane in self._spans and stroke == "life" else getattr(self._strokes, stroke)
        return "".join(row)

    def _heads(self) -> None:
        room = self._column - 1
        grouped = any(lane.group for lane in self._timeline.lanes)
        heads = [[*((lane.group,) if grouped else ()), lane.title, lane.detail] for lane in self._timeline.lanes]
        wrapped = [[part for text in head for part in textwrap.wrap(text, max(5, room)) or [""]] for head in heads]
        for row in range(max(map(len, wrapped))):
            cells = (lines[row] if row < len(lines) else "" for lines in wrapped)
            line = "".join(f"{cell:<{self._column}}" for cell in cells)
            if line.strip():
                self._put(line)

    # --- rows ---

    def _step(self, index: int, event: TimelineEvent) -> None:
        if index == self._timeline.gap:
            self._band()
        crossing = [edge for edge in self._timeline.edges if max(edge.source, edge.target) == index]
        for source, target, label, missing in dict.fromkeys((*self._lanes(edge), edge.label, edge.missing) for edge in crossing):
            self._edge(source, target, label, missing=missing, up=any(edge.target < edge.source for edge in crossing if edge.missing))
        if not any(self._lanes(edge)[0] != self._lanes(edge)[1] for edge in crossing):
            self._put(self._base())
        self._event(event)
        self._spans |= {span.lane for span in self._timeline.spans if span.first == index}
        self._spans -= {span.lane for span in self._timeline.spans if span.last == index}

    def _event(self, event: TimelineEvent) -> None:
        first = " ".join(filter(None, (event.mark, event.text, event.op)))
        x = self._x(event.lane)
        right = self._width - x - 2
        whole = "  ".join(filter(None, (first, event.place)))
        texts = [whole] if len(whole) <= max(right, x - 1) else [text for text in (first, event.place) if text]
        for row, text in enumerate(texts):
            self._put(self._side_note(text, x, right, node=row == 0))

    def _side_note(self, text: str, x: int, right: int, *, node: bool) -> str:
        """A row with a text to the right of a lane's line, or to the left if the text needs the larger room there."""
        row = list(self._base())
        if node:
            row[x] = self._strokes.node
        to_the_left = len(text) > right and x - 1 > right
        shown = self._cut(text, x - 1 if to_the_left else right)
        begin = x - 1 - len(shown) if to_the_left else x + 2
        row[begin : begin + len(shown)] = shown
        for around in (begin - 1, begin + len(shown)):
            if around != x and 0 <= around < len(row):
                row[around] = " "
        return "".join(row)

    def _cut(self, text: str, room: int) -> str:
        mark = self._strokes.cut
        return text if len(text) <= room else text[: max(0, room - len(mark))] + mark

    def _band(self) -> None:
        """The band across all lanes: what is missing, and the culprits."""
        texts = [f"missing: {self._timeline.missing}"] if self._timeline.missing else []
        texts += [f"{what} at {where} {self._timeline.blame}" for what, where in self._timeline.culprits]
        if not texts:
            return
        rule = (self._strokes.gap + (" " if self._strokes is ASCII else "")) * self._width
        self._put(rule, MISSING)
        for text in texts:
            for line in textwrap.wrap(text, self._width, initial_indent=f"{self._strokes.cross} ", subsequent_indent="  "):
                self._put(line, MISSING)
        self._put(rule, MISSING)

    def _lanes(self, edge: Edge) -> tuple[int, int]:
        return self._timeline.events[edge.source].lane, self._timeline.events[edge.target].lane

    def _edge(self, begin: int, end: int, label: str, *, missing: bool, up: bool) -> None:
        """A row with an arrow from lane to lane; an edge along one lane is the lane's own line."""
        source, target = self._x(begin), self._x(end)
        if source == target:
            return
        row, low, high = list(self._base()), min(source, target), max(source, target)
        row[low : high + 1] = (self._strokes.gap if missing else self._strokes.line) * (high - low + 1)
        row[source] = self._strokes.turn_right if target > source else self._strokes.turn_left
        row[target] = self._strokes.up if missing and up else self._strokes.right if target > source else self._strokes.left
        written = f" {self._strokes.cross if missing else label} "
        if written.strip() and len(written) <= high - low - 3:
            middle = (low + high + 1 - len(written)) // 2
            row[middle : middle + len(written)] = written
        self._put("".join(row), MISSING if missing else "")

    def _strip(self) -> None:
        cells = [" ".join(filter(None, (cell.mark, MEMORY_WORDS[cell.kind] + ":", cell.text))) for cell in self._timeline.strip]
        if cells:
            for line in textwrap.wrap("memory " + "".join(f"[{cell}]" for cell in cells), self._width):
                self._put(line)
