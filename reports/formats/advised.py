"""The list of `consan advise`, as text, as JSON and as a section of the HTML page."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import Any, Final

from consan.dataclass import dataclass

EVIDENCE: Final = "This is evidence of these runs and sizes, not a proof."
TOGETHER: Final = "not needed, alone and together"
_HEADS: Final = (
    TOGETHER,
    "not needed alone, but needed once those above are gone",
    "needed",
    "not assessed",
    "did not run, so nothing is known of it",
    "stages that no overlap uses",
)
STAGES: Final = "stages"


@dataclass(frozen=True)
class AdviceLine:
    """One statement of a kernel, as the list has it."""

    ptx: str
    file: str
    line: int
    ptx_line: int
    place: str  # in words, with the user's line where it comes from a header
    ran: int  # executions by threads
    need: str
    why: str
    together: bool
    weaker: tuple[str, ...] = ()  # forms that serve as well
    edits: tuple[tuple[int, int, str], ...] = ()  # the kernel's PTX without it; empty if it is not claimed to be superfluous
    instructions: int = 1  # of the PTX: an unrolled loop has several
    free: tuple[int, ...] = ()  # the PTX lines of those that are not needed, together, although the statement is
    orders: tuple[str, ...] = ()  # the places of what is found without it

    @property
    def head(self) -> str:
        """The part of the list that it belongs to."""
        return _HEADS[{"needed": 2, "not assessed": 3, "did not run": 4, STAGES: 5}.get(self.need, 0 if self.together else 1)]

    @property
    def remarks(self) -> tuple[str, ...]:
        """Further facts about it."""
        several = f"{self.instructions} instructions" if self.instructions > 1 else ""
        lines, number = ", ".join(map(str, self.free)), len(self.free)
        free = f"{number} of them may go{' together' * (number > 1)}: PTX {'lines' if number > 1 else 'line'} {lines}" if lines else ""
        why = f"{self.why}, the first at {self.orders[0]}" if self.orders else self.why
        return tuple(filter(None, (why, several, free, *self.weaker)))


def parts(lines: Sequence[AdviceLine]) -> Iterator[tuple[str, list[AdviceLine]]]:
    """The parts of the list that have lines."""
    for head in _HEADS:
        if found := [line for line in lines if line.head == head]:
            yield head, found


def text(lines: Sequence[AdviceLine]) -> list[str]:
    """The list as lines of text."""
    return [row for head, found in parts(lines) for row in ("", f"{head}:", *map(row_of, found))]


def row_of(line: AdviceLine) -> str:
    """One statement."""
    return f"  {line.ptx:<40} {line.place:<24} ran {line.ran:>12,} times{''.join(f'; {each}' for each in line.remarks)}"


def as_json(lines: Sequence[AdviceLine]) -> list[dict[str, Any]]:
    """The list for a file."""
    return [{name: value for name, value in vars(each).items() if name != "edits"} for each in lines]


def section(lines: Sequence[AdviceLine], covered: str) -> str:
    """The section of the page. `covered`: which launches were asked."""
    tables = "".join(f"<h3>{html.escape(head.capitalize())}</h3>\n{_table(found)}" for head, found in parts(lines))
    return (
        '<section class="panel" aria-labelledby="advice"><h2 id="advice">Synchronisation that nothing recorded needs</h2>\n'
        f"<p>{html.escape(covered)} {html.escape(EVIDENCE)}</p>\n{tables or '<p>Nothing that synchronises was recorded.</p>'}</section>\n"
    )


def _table(lines: Sequence[AdviceLine]) -> str:
    rows = "".join(
        f"<tr><td><code>{html.escape(line.ptx)}</code></td><td>{html.escape(line.place)}</td><td>{line.ran:,}</td>"
        f"<td>{html.escape('; '.join(line.remarks))}</td></tr>\n"
        for line in lines
    )
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("Statement", "Place", "Executions by threads", "Remarks"))
    return f"<table><thead><tr>{heads}</tr></thead><tbody>\n{rows}</tbody></table>\n"
