"""A struct that is passed by value, of members that each are an argument: `--arg struct:SPEC;SPEC;...`.

A kernel of CUTLASS or of Pallas takes its tensor maps and pointers within one struct. Each member lies at its natural alignment (64 bytes
for a tensor map, 8 for the address of a buffer), or at the offset behind its `@`; `bytes=` fills what a program does not care for. The
struct ends with its last member, at a multiple of the largest alignment.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from consan._errors import UsageError
from consan.dataclass import dataclass
from consan.launching.placement import PackedStruct
from consan.tensormap.description import ALIGNMENT, NBYTES

PREFIX: Final = "struct:"
_OFFSET: Final = re.compile(r"(?P<spec>.*)@(?P<offset>\d+)")
_EXPECTED: Final = "expected struct:SPEC;SPEC@OFFSET;..., where no member overlaps another"


@dataclass(frozen=True)
class MembersSpec:
    """`struct:SPEC;...`: the members with their offsets, in order."""

    text: str
    index: int
    members: tuple[tuple[int, Any], ...]
    parameter_bytes: int

    @property
    def specs(self) -> list[Any]:
        """The members."""
        return [spec for _, spec in self.members]

    def materialise(self, seed: int) -> PackedStruct:
        """The struct over new arrays."""
        return PackedStruct(tuple((offset, spec.materialise(seed)) for offset, spec in self.members), self.parameter_bytes)


def members_of(text: str, index: int, parse: Callable[[str, int], Any]) -> MembersSpec:
    """The struct that a text describes. `parse` reads a member. Raises UsageError."""
    found, end, largest = list[tuple[int, Any]](), 0, 1
    for number, word in enumerate(text.removeprefix(PREFIX).split(";"), 1):
        match = _OFFSET.fullmatch(word)
        spec = _numbered(parse(match["spec"] if match else word, index), 1000 * index + number)
        alignment = ALIGNMENT if spec.parameter_bytes == NBYTES else _alignment(spec)
        offset = int(match["offset"]) if match else -(-end // alignment) * alignment
        if offset < end:
            raise UsageError(_EXPECTED)
        found.append((offset, spec))
        end, largest = offset + spec.parameter_bytes, max(largest, alignment)
    return MembersSpec(text, index, tuple(found), -(-end // largest) * largest)


def _alignment(spec: Any) -> int:
    """An address and a number have their size, bytes have none."""
    return 1 if getattr(spec, "type", "") == "bytes" else min(int(spec.parameter_bytes), 8)


def _numbered(spec: Any, number: int) -> Any:
    """A member whose buffer has random numbers of its own."""
    buffer = getattr(spec, "buffer", None)
    return replace(spec, index=number) if buffer is None else replace(spec, buffer=replace(buffer, index=number))
