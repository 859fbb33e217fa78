"""Draws a `Timeline` as inline SVG: no script, no font, no identifier; colours come from the page's style sheet.

Time runs down, lanes are columns. Text in a picture does not reflow on a telephone, so `draw` lays the picture out
for a given width in pixels, and the page holds one for wide and one for narrow windows. Texts that do not fit are cut with an ellipsis;
the table beside the picture has the full texts.
"""

from __future__ import annotations

import html
import itertools
import textwrap
from typing import Final

from consan.dataclass import dataclass
from consan.reports.timeline.picture import MEMORY_WORDS, Cell, Edge, Lane, Timeline, TimelineEvent

WIDE: Final = 560
NARROW: Final = 324

_SANS, _BOLD, _MONO = 6.5, 7.4, 6.75  # average width of a character in pixels, for the font sizes of the style sheet
_LINE: Final = 16
_PAD: Final = 8
_SPACE: Final = 24  # between two rows: room for the arrow to the lower one
_LABEL: Final = 11  # extra room for the arrow's label
_MARKS: Final = {"(1)": "one", "(2)": "two"}
_LONGEST_BOX: Final = 250


@dataclass(frozen=True)
class _Box:
    """A step after layout: its frame, and (class, text) of its lines."""

    x: float
    y: float
    width: float
    height: float
    centre: float
    lines: tuple[tuple[str, str], ...]


def draw(timeline: Timeline, width: int) -> str:
    """The picture as an `<svg>` element of this width."""
    return _Drawing(timeline, width).svg()


def cut(text: str, room: int) -> str:
    """The text, or its beginning and an ellipsis."""
    return text if len(text) <= room else text[: max(1, room - 1)] + "\u2026"


def cut_left(text: str, room: int) -> str:
    """The text, or an ellipsis and its end: the end of a place says most."""
    return text if len(text) <= room else "\u2026" + text[-max(1, room - 1) :]


def wrap(text: str, room: int, lines: int) -> list[str]:
    """At most this many lines of this many characters."""
    return textwrap.wrap(text, max(6, room), max_lines=lines, placeholder=" \u2026", break_on_hyphens=False) or [""]


class _Drawing:
    """Draws heads, then rows from the top, then the background. Methods are in the order of drawing."""

    def __init__(self, timeline: Timeline, width: int) -> None:
        self._timeline = timeline
        self._width = width
        self._column = width / len(timeline.lanes)
        self._back: list[str] = []  # lifelines, spans, edges
        self._front: list[str] = []  # heads, boxes, the band of what is missing
        self._boxes: list[_Box] = []
        self._y = 0.0

    def svg(self) -> str:
        """The element."""
        self._heads()
        top = self._y
        self._rows()
        bottom = self._y + 6
        for lane in range(len(self._timeline.lanes)):
            self._lifeline(lane, top, bottom)
        self._separators(bottom)
        for span in self._timeline.spans:
            self._span(span.lane, span.first, span.last, bottom)
        for edge in self._timeline.edges:
            self._edge(edge)
        self._y = bottom + 12
        self._strip()
        body = "".join((*self._back, *self._front))
        label = html.escape(self._timeline.caption, quote=True)
        size = f'viewBox="0 0 {self._width} {self._y:.0f}" width="{self._width}" height="{self._y:.0f}"'
        return f'<svg {size} role="img" aria-label="Timeline. {label}" focusable="false">{body}</svg>'

    def _x(self, lane: int) -> float:
        return self._column * (lane + 0.5)

    # --- heads ---

    def _heads(self) -> None:
        heads = [self._head_lines(lane) for lane in self._timeline.lanes]
        most = max(map(len, heads))
        for index, lines in enumerate(heads):
            for row, (style, text) in enumerate(lines):
                self._text(self._x(index), 14 + row * _LINE, text, f"head {style}")
        self._y = most * _LINE + 4

    def _head_lines(self, lane: Lane) -> list[tuple[str, str]]:
        room = {style: int((self._column - 2) / (_BOLD if style == "title" else _SANS)) for style in ("group", "title", "detail")}
        group = [("group", lane.group)] if any(each.group for each in self._timeline.lanes) else []
        lines = [(style, text) for style, text in (*group, ("title", lane.title), ("detail", lane.detail))]
        return [(style, part) for style, text in lines for part in wrap(text, room[style], 3) if part or style == "group"]

    def _lifeline(self, lane: int, top: float, bottom: float) -> None:
        x = self._x(lane)
        role = self._timeline.lanes[lane].role
        self._back.append(f'<path class="life {role}" d="M{x:.1f} {top:.1f}V{bottom:.1f}"/>')
        self._back.append(f'<path class="life end" d="M{x - 4:.1f} {bottom - 5:.1f}l4 5l4 -5"/>')

    def _separators(self, bottom: float) -> None:
        """Lines between lanes of different CTAs."""
        groups = [lane.group for lane in self._timeline.lanes]
        for index, (left, right) in enumerate(itertools.pairwise(groups), 1):
            if left != right and left and right:
                self._back.append(f'<path class="wall" d="M{index * self._column:.1f} 4V{bottom:.1f}"/>')

    # --- rows ---

    def _rows(self) -> None:
        for index, event in enumerate(self._timeline.events):
            if index == self._timeline.gap:
                self._band()
            self._y += (_SPACE if index else 14) + (_LABEL if self._labelled(index) else 0)
            box = self._layout(event)
            self._boxes.append(box)
            self._draw_box(event, box)
            self._y += box.height
        if self._timeline.gap >= len(self._timeline.events):
            self._band()
        self._y += 10

    def _labelled(self, index: int) -> bool:
        return any(edge.label and max(edge.source, edge.target) == index for edge in self._timeline.edges)

    def _layout(self, event: TimelineEvent) -> _Box:
        room = min(_LONGEST_BOX, self._width - 8) - 2 * _PAD
        lines = [("text", part) for part in wrap(" ".join(filter(None, (event.mark, event.text))), int(room / (_BOLD)), 2)]
        lines += [("op", cut(event.op, int(room / _MONO)))] if event.op else []
        lines += [("place", cut_left(event.place, int(room / _MONO)))] if event.place else []
        widest = max(len(text) * (_BOLD if style == "text" else _MONO) for style, text in lines)
        width, centre = widest + 2 * _PAD, self._x(event.lane)
        x = min(max(2.0, centre - width / 2), self._width - width - 2)
        return _Box(x, self._y, width, len(lines) * _LINE + 9, centre, tuple(lines))

    def _draw_box(self, event: TimelineEvent, box: _Box) -> None:
        style = f"box {event.kind} {_MARKS.get(event.mark, '')}".strip()
        radius = 4 if event.kind == "access" else min(12.0, box.height / 2)
        frame = f'x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="{radius:.0f}"'
        self._front.append(f'<g class="{style}"><rect {frame}/>')
        for row, (kind, text) in enumerate(box.lines):
            self._text(box.x + box.width / 2, box.y + 17 + row * _LINE, text, kind)
        self._front.append("</g>")

    def _band(self) -> None:
        """A band across all lanes: what is missing, and the culprits."""
        room, bold = int((self._width - 44) / _SANS), int((self._width - 44) / _BOLD)
        missing = wrap(f"missing: {self._timeline.missing}", room, 6) if self._timeline.missing else []
        culprits = [part for what, where in self._timeline.culprits for part in wrap(f"{what} at {where} {self._timeline.blame}", bold, 4)]
        lines = [*(("left", text) for text in missing), *(("left culprit", text) for text in culprits)]
        if not lines:
            return
        self._y += _SPACE - 4
        height = len(lines) * _LINE + 10
        self._front.append(f'<g class="gap"><rect x="1" y="{self._y:.1f}" width="{self._width - 2}" height="{height}" rx="4"/>')
        middle = self._y + height / 2
        self._front.append(f'<path class="cross" d="M10 {middle - 5:.1f}l10 10m0 -10l-10 10"/>')
        for row, (style, text) in enumerate(lines):
            self._text(30, self._y + 17 + row * _LINE, text, style)
        self._front.append("</g>")
        self._y += height - 4

    # --- between rows ---

    def _span(self, lane: int, first: int, last: int | None, bottom: float) -> None:
        x, top = self._x(lane), self._boxes[first].y
        end = bottom - 7 if last is None else self._boxes[last].y + self._boxes[last].height / 2
        style = "span open" if last is None else "span"
        self._back.append(f'<rect class="{style}" x="{x - 5:.1f}" y="{top:.1f}" width="10" height="{max(0.0, end - top):.1f}" rx="3"/>')

    def _edge(self, edge: Edge) -> None:
        source, target = self._boxes[edge.source], self._boxes[edge.target]
        down = source.y <= target.y
        begin = source.y + source.height if down else source.y
        end = target.y if down else target.y + target.height
        turn = (end if down else begin) - 12
        head = -6 if down else 6
        style = "edge missing" if edge.missing else "edge"
        line = f"M{source.centre:.1f} {begin:.1f}V{turn:.1f}H{target.centre:.1f}V{end:.1f}"
        arrow = f"M{target.centre - 4:.1f} {end + head:.1f}L{target.centre:.1f} {end:.1f}L{target.centre + 4:.1f} {end + head:.1f}"
        self._back.append(f'<path class="{style}" d="{line}"/><path class="{style} tip" d="{arrow}"/>')
        if edge.label:
            self._edge_label(edge.label, source.centre, target.centre, turn)

    def _edge_label(self, label: str, source: float, target: float, y: float) -> None:
        """Above the horizontal part of an arrow, or beside a vertical one."""
        if abs(source - target) < 1:
            self._text(source + 8, y + 3, label, "left label")
        else:
            # Near the start of the arrow: arrows from several lanes end at the same event.
            self._text(source + self._column / 2 * (1 if target > source else -1), y - 4, label, "label")

    # --- memory ---

    def _strip(self) -> None:
        cells = self._timeline.strip
        if not cells:
            return
        weights = [_WEIGHT[cell.kind] for cell in cells]
        x, unit = 2.0, (self._width - 4) / sum(weights)
        for cell, weight in zip(cells, weights, strict=True):
            self._cell(cell, x, unit * weight)
            x += unit * weight
        self._y += 2 * _LINE + 24

    def _cell(self, cell: Cell, x: float, width: float) -> None:
        mark = _MARKS.get(cell.mark, "")
        self._front.append(f'<g class="cell {cell.kind} {mark}"><rect x="{x:.1f}" y="{self._y:.1f}" width="{width:.1f}" height="26"/>')
        self._text(x + width / 2, self._y + 17, f"{cell.mark} {MEMORY_WORDS[cell.kind]}".strip(), "text")
        for row, text in enumerate(wrap(cell.text, int(width / _MONO), 2)):
            self._text(x + width / 2, self._y + 42 + row * _LINE, text, "place")
        self._front.append("</g>")

    def _text(self, x: float, y: float, text: str, style: str) -> None:
        if text:
            self._front.append(f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{html.escape(text)}</text>')


_WEIGHT: Final = {"inside": 2.0, "outside": 1.4, "hit": 1.0, "unwritten": 1.2}
