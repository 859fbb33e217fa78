"""Print the opcode table as markdown: ``python -m consan.instrument.isa``."""

from __future__ import annotations

from consan.instrument.isa.model import Row
from consan.instrument.isa.table import ROWS

_COLUMNS = ("form", "operands", "family", "access", "space", "proxy", "completion", "status", "section")


def _cells(row: Row) -> tuple[str, ...]:
    space = "/".join(row.classes.get(row.space, (row.space,)))
    return (f"`{row.form}`", row.notation, row.family, row.access, space, row.proxy, row.completion, row.status, row.section)


def markdown() -> str:
    """The whole table, one line per row."""
    lines = [_COLUMNS, ("---",) * len(_COLUMNS), *map(_cells, ROWS)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


if __name__ == "__main__":
    print(markdown())
