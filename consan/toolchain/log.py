"""Registers, spills and shared memory of each entry, read from an assembler's log."""

from __future__ import annotations

import re

from consan.dataclass import dataclass

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_FIELDS: dict[str, re.Pattern[str]] = {
    "registers": re.compile(r"Used (\d+) registers"),
    "barriers": re.compile(r"used (\d+) barriers"),
    "shared": re.compile(r"(\d+) bytes smem"),
    "stack": re.compile(r"(\d+) bytes stack frame"),
    "spill_stores": re.compile(r"(\d+) bytes spill stores"),
    "spill_loads": re.compile(r"(\d+) bytes spill loads"),
}
_OF_FUNCTION = re.compile(r"Function properties for '?(\S+?)'?$")


@dataclass
class AssembledEntry:
    """Resources of one entry as the assembler reports them."""

    registers: int = 0
    stack: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    shared: int = 0
    barriers: int = 0


def entry_info(log: str) -> dict[str, AssembledEntry]:
    """Registers, spills and shared memory of each entry, from the log of `-v`; lines about called functions are skipped."""
    entries: dict[str, AssembledEntry] = {}
    current: AssembledEntry | None = None
    for line in log.splitlines():
        if not line.startswith("ptxas"):
            if not line.startswith(" "):
                current = None  # nvJitLink's own "info :" summary, which counts the reserved shared memory as well
        elif match := _ENTRY.search(line):
            current = entries.setdefault(match.group(1), AssembledEntry())
        elif match := _OF_FUNCTION.search(line):
            current = entries.get(match.group(1))
        if current is not None:
            _read_fields(current, line)
    return entries


def _read_fields(entry: AssembledEntry, line: str) -> None:
    for name, pattern in _FIELDS.items():
        if match := pattern.search(line):
            setattr(entry, name, int(match.group(1)))
