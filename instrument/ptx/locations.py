"""Source locations (ISA "Debugging Directives: .loc", ".section").

Defines which call site an `inlined_at` refers to: a `.loc` of the same function with that file, line and column. It may be one of several:
a template's line is inlined once for each of its instances (`CallSites`).
This gives the chain of inlining, from the inside outwards. A `.loc` is valid in its own function only. Line 0 (code without a
source line) is passed on unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from consan.dataclass import dataclass
from consan.instrument.ptx.source import Source
from consan.instrument.ptx.tree import Directive

_NUMBER = r"-?(?:0[xX][0-9a-fA-F]{1,4}|[1-9][0-9]{0,4}|0)(?![\w$])"
_DEBUG_ITEM = re.compile(rf"//[^\n]*|([A-Za-z_$%][\w$]*)\s*:|\.b8\s+({_NUMBER}(?:\s*,\s*{_NUMBER})*)", re.ASCII)


@dataclass(frozen=True)
class Loc:
    """A position in a source file. `inlined_at`: the position at which its function was inlined, and so on outwards."""

    file: int
    line: int
    column: int
    function_name: str | None = None
    inlined_at: Loc | None = None


class LocDirective(Directive):
    """A `.loc`, resolved on first use."""

    __slots__ = ("_call_site", "_loc", "fields")

    def __init__(self, source: Source, start: int, end: int, fields: tuple[str | None, ...], call_site: LocDirective | None) -> None:
        self.source = source
        self.start = start
        self.end = end
        self.name = ".loc"
        self.label = None
        #: file, line, column, function label, offset from that label, file, line and column of the call site
        self.fields = fields
        self._call_site = call_site
        self._loc: Loc | None = None

    @property
    def loc(self) -> Loc:
        """The location with its chain of inlining."""
        chain = [self]
        while chain[-1]._loc is None and chain[-1]._call_site is not None:
            chain.append(chain[-1]._call_site)
        while chain:
            directive = chain.pop()
            if directive._loc is None:
                directive._loc = directive._resolve()
        assert self._loc is not None
        return self._loc

    def _resolve(self) -> Loc:
        file, line, column, label, offset, *site = self.fields
        at = self._call_site._loc if self._call_site is not None else None
        if at is None and site[0] is not None:
            at = Loc(int(site[0]), int(site[1] or 0), int(site[2] or 0))
        function = f"{label}+{offset}" if offset else label
        return Loc(int(file or 0), int(line or 0), int(column or 0), function, at)


_Fields = tuple[str | None, ...]


class CallSites:
    """The `.loc` directives of a function so far.

    The compiler writes a chain from the outside inwards, once, right before the first `.loc` that needs it. So the `.loc` right before
    another one, at its `inlined_at`, is its call site, and names the function (an instance of a template) that calls it
    there. Later ones that are called from there take the nearest earlier `.loc` of a function that calls them, else the nearest one.
    Two inlined copies of one function are one: the nearer.
    """

    def __init__(self) -> None:
        self._nearest: dict[_Fields, LocDirective] = {}  # by file, line and column
        self._within: dict[_Fields, LocDirective] = {}  # by function, too
        self._callers: dict[_Fields, list[_Fields]] = {}  # by the called function and the call's place: the calling functions

    def add(self, fields: _Fields, directive: LocDirective) -> None:
        """Add a directive that was read."""
        self._nearest[fields[:3]] = self._within[fields[:5]] = directive

    def complete(self, fields: _Fields) -> _Fields:
        """The fields with the call site that the compiler leaves out in a loop: that of the nearest earlier `.loc` of the same place."""
        if fields[5] is None and fields[1] != "0" and (earlier := self._nearest.get(fields[:3])) is not None:
            return earlier.fields
        return fields

    def of(self, fields: _Fields, before: LocDirective | None) -> LocDirective | None:
        """The call site of a directive. `before`: the one before it, if no instruction lies between."""
        place = fields[5:]
        callers = self._callers.setdefault(fields[3:], [])
        if before is not None and before.fields[:3] == place:
            if before.fields[3:5] not in callers:
                callers.append(before.fields[3:5])
            return before
        known = [self._within[place + caller] for caller in callers]
        return max(known, key=lambda each: each.start) if known else self._nearest.get(place)


class DebugStrings:
    """The `.debug_str` sections of a module: names of inlined functions, NUL-terminated, found by label."""

    def __init__(self, sections: Iterable[str]) -> None:
        data = bytearray()
        self._labels = {".debug_str": 0}
        for section in sections:
            for match in _DEBUG_ITEM.finditer(section):
                label, numbers = match.groups()
                if label is not None:
                    self._labels[label] = len(data)
                elif numbers is not None:
                    data += bytes(int(number, 0) & 0xFF for number in numbers.split(","))
        self._data = bytes(data)

    def get(self, name: str) -> str | None:
        """The string at "label" or "label+offset"; None if the label is not defined here."""
        label, _, offset = name.partition("+")
        if label not in self._labels:
            return None
        start = self._labels[label] + int(offset or 0)
        end = self._data.find(b"\0", start)
        return self._data[start : end if end >= 0 else None].decode("utf-8", "replace")
