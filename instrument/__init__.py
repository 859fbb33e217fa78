"""PTX in, instrumented PTX and a site table out: record/ makes modules that are recorded, called_hooks.py those that call hooks.

Nothing here needs a GPU, a driver or a toolchain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from consan.dataclass import dataclass
from consan.instrument.abi.variant import Variant
from consan.instrument.isa import may_wait, row_of
from consan.instrument.ptx import Instruction, Module
from consan.instrument.rewriting.context import place_of
from consan.instrument.rewriting.delays import SEED
from consan.instrument.rewriting.emit import CONTROL
from consan.instrument.sites import FunctionStats, Place, Site, StaticFinding

__all__ = ["CONTROL", "SEED", "Instrumented", "cluster_tier", "communicates"]


@dataclass(frozen=True)
class Instrumented:
    """The result: text to assemble, the meaning of its site numbers, and what is covered."""

    ptx: str
    target: str
    sites: tuple[Site, ...]
    functions: tuple[FunctionStats, ...]
    entries: tuple[str, ...]
    variant: Variant
    external: tuple[str, ...]
    lines: Sequence[int]
    places: Places
    hazards: tuple[StaticFinding, ...] = ()  # static findings on registers: they hold for each launch of their kernels
    debug: bool = False  # a debug build: its registers were not checked
    communicates: bool = False  # CTAs may wait for each other through global memory

    @property
    def module(self) -> Module:
        """The original text, parsed at most once."""
        return self.places.module

    def original(self, line: int, opcode: str = "") -> Place | None:
        """The instruction at a line of the original text, given a line of the instrumented text.

        `opcode`: that of the instruction, for lines with several.
        """
        return self.places.named(self.lines[line - 1], opcode) if 1 <= line <= len(self.lines) else None

    def reachable(self, entry: str) -> list[FunctionStats]:
        """The functions that a kernel can call, itself first. An indirect call can reach all device functions."""
        table = {f.name: f for f in self.functions}
        pending, found = [entry], dict[str, FunctionStats]()
        while pending:
            name = pending.pop()
            names = [f.name for f in self.functions if f.kind == "func"] if name == "" else [name]
            for each in names:
                if each in table and each not in found:
                    found[each] = table[each]
                    pending += sorted(table[each].calls)
        return list(found.values())


def cluster_tier(ctas: int) -> int:
    """The size class of the runtime for clusters of `ctas` CTAs: 0 without clusters, else a power of two."""
    return 0 if ctas <= 1 else 1 << (ctas - 1).bit_length()


class Places(Mapping[int, Place]):
    """Instructions of the original text by line, computed only when a fault needs a place."""

    def __init__(self, module: Callable[[], Module]) -> None:
        self._read = module

    @cached_property
    def module(self) -> Module:
        """The text, read on the first request."""
        return self._read()

    @cached_property
    def _lines(self) -> dict[int, list[Instruction]]:
        found: dict[int, list[Instruction]] = {}
        for body in (f.body for f in self.module.functions if f.body is not None):
            for instruction in body.instructions():
                found.setdefault(instruction.line, []).append(instruction)
        return found

    def named(self, line: int, opcode: str) -> Place | None:
        """The first instruction of a line with this opcode, or else the line's last one."""
        there = self._lines.get(line, [])
        chosen = next((each for each in there if each.opcode == opcode), there[-1] if there else None)
        return place_of(self.module, chosen) if chosen is not None else None

    def __getitem__(self, line: int) -> Place:
        """The instruction at which a thread at a line waits; else the line's last one."""
        there = self._lines[line]
        return place_of(self.module, next(filter(may_wait, there), there[-1]))

    def __iter__(self) -> Iterator[int]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)


def communicates(module: Module) -> bool:
    """Whether CTAs may wait for each other through global memory. Then all CTAs that were resident must stay resident."""
    for function in module.functions:
        for instruction in function.body.instructions() if function.body else ():
            row = row_of(instruction)
            if (row.is_load or row.is_atomic) and (access := row.describe(instruction)).is_strong and access.may_be_global:
                return True
    return False
