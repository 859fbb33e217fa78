"""The symbols of a shared library, local ones too: which function, or which variable, is at an offset. 64-bit ELF only."""

from __future__ import annotations

import struct
from bisect import bisect_right
from typing import Final, NamedTuple

_SYMBOLS: Final = 2  # SHT_SYMTAB
_TYPES: Final = {1: "variable", 2: "function"}
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_ENTRY: Final = struct.Struct("<IBBHQQ")


class ElfSymbol(NamedTuple):
    """A function or a variable: its offset in the library, its size in bytes, its mangled name."""

    offset: int
    size: int
    name: str
    kind: str


class ElfSymbols:
    """Those of a library, from its bytes."""

    def __init__(self, data: bytes) -> None:
        self._found = sorted(_symbols(data))
        self._offsets = [each.offset for each in self._found]

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self._found)

    def at(self, offset: int) -> ElfSymbol | None:
        """The symbol whose bytes hold an offset."""
        index = bisect_right(self._offsets, offset) - 1
        found = self._found[index] if index >= 0 else None
        return found if found is not None and offset < found.offset + max(found.size, 1) else None


def _symbols(data: bytes) -> list[ElfSymbol]:
    start, size, count = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 58)
    sections = [_SECTION.unpack_from(data, start + size * number) for number in range(count)]
    found = []
    for section in sections:
        if section[1] != _SYMBOLS:
            continue
        names = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], _ENTRY.size):
            name, info, _, place, value, length = _ENTRY.unpack_from(data, at)
            if place and info & 15 in _TYPES:
                begin = names + name
                found.append(ElfSymbol(value, length, data[begin : data.index(b"\0", begin)].decode(), _TYPES[info & 15]))
    return found
