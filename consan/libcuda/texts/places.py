"""Lines for a kernel whose PTX has none, where a framework knows them: XLA drops those of the kernels of Pallas that it compiles by Triton.

An access of global memory has the line of the only statement of the kernel that loads, stores, compares and swaps, or makes another atomic
operation. Where there are several, and for all other instructions, it is the line where the kernel's function begins.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Final

from consan.dataclass import dataclass
from consan.session.modules.producers import PALLAS_MARK

_ENTRY: Final = re.compile(r"^[^/\n]*\.entry\s+([\w$]+)")
_ACCESS: Final = re.compile(r"^\s*(?:@!?%\w+\s+)?(ld|st|atom|red)\.(?=[\w.:]*global)(?:[\w.:]*(\.cas)\.)?")
_KINDS: Final = {"ld": "loads", "st": "stores", "atom": "atomics", "red": "atomics", ".cas": "compares"}
_INSTRUCTION: Final = re.compile(r"^\s*(?:@!?%\w+\s+)?[a-z][\w.:]*(?:\s[^:]*)?;")
_FILE: Final = re.compile(r"^\s*\.(?:file|loc)\b", re.M)
_BEGIN, _END = "// begin inline asm", "// end inline asm"
_HEADER: Final = re.compile(r"^\s*\.address_size\s+\d+.*$", re.M)


@dataclass(frozen=True)
class KernelPlaces:
    """The file of a kernel's function, the line where it begins, and those of statements that access memory, by what they do."""

    file: str
    line: int
    accesses: Mapping[str, frozenset[int]] = field(default_factory=dict)

    @classmethod
    def stored(cls, text: str) -> KernelPlaces:
        """Those that `store` gave."""
        file, line, accesses = json.loads(text)
        return cls(file, line, {kind: frozenset(lines) for kind, lines in accesses.items()})

    def store(self) -> str:
        """As text."""
        return json.dumps([self.file, self.line, {kind: sorted(lines) for kind, lines in self.accesses.items()}])

    def of(self, text: str) -> int:
        """The line of an instruction."""
        access = _ACCESS.match(text)
        lines = frozenset[int]() if access is None else self.accesses.get(_KINDS[access[2] or access[1]], frozenset())
        return next(iter(lines)) if len(lines) == 1 else self.line


def with_places(ptx: str, known: Mapping[str, KernelPlaces]) -> str:
    """The PTX with the lines of its kernels, if it has none."""
    if not known or _FILE.search(ptx) or not any(match[1] in known for line in ptx.splitlines() if (match := _ENTRY.match(line))):
        return ptx
    files = list(dict.fromkeys(each.file for each in known.values()))
    named = "".join(f"\n.file {number} {json.dumps(name, ensure_ascii=False)}" for number, name in enumerate(files, 1))
    return _HEADER.sub(lambda found: f"{found[0]} {PALLAS_MARK}{named}", "\n".join(_placed(ptx, known, files)), count=1)


def _placed(ptx: str, known: Mapping[str, KernelPlaces], files: list[str]) -> Iterator[str]:
    places, last = None, 0
    for lines in _statements(ptx.split("\n")):
        if match := _ENTRY.match(lines[0]):
            places, last = known.get(match[1]), 0
        instructions = [each for each in lines if _INSTRUCTION.match(each)]
        if places is not None and instructions:
            line = places.of(next(filter(_ACCESS.match, instructions), instructions[0]))
            if line != last:
                last = line
                yield f".loc {files.index(places.file) + 1} {last} 0"
        yield from lines


def _statements(lines: list[str]) -> Iterator[list[str]]:
    """Each line, but those of inline assembly together: their line is the one before it."""
    held: list[str] = []
    for line in lines:
        held.append(line)
        if held[0].strip() != _BEGIN or line.strip() == _END:
            yield held
            held = []
    if held:
        yield held
