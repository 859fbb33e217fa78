"""`multimem` between ranks (SEMANTICS 12, R-RK3): each is one access to the memory of each rank (8.2.3, 9.7.9.14).

The memory of the ranks behind a multimem address lies at equal distances, `stride`. The address itself is `ABOVE` bytes below that of
rank 0, where no memory is. So an ordinary access by a multimem address faults, and so does a `multimem` by an ordinary one:

    multimem.st.relaxed.sys.global.u32 [%rd1+4], %r1;
    { .reg .b64 %multimem; add.s64 %multimem, %rd1, 4 + ABOVE; st.relaxed.sys.global.b32 [%multimem], %r1;      // of rank 0
      add.s64 %multimem, %multimem, stride; st.relaxed.sys.global.b32 [%multimem], %r1; }                      // of rank 1

No line moves. `multimem.ld_reduce` sums in the order of the ranks, with the precision of the type: the ISA leaves the order open.

Not handled, and refused: elements of 8 bits, and bulk copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from consan._errors import NotSupported
from consan.instrument.isa import row_of
from consan.instrument.ptx import Edits, Instruction, Module, parse

ABOVE: Final = 1 << 46
_BITS: Final = {"16": 16, "32": 32, "64": 64, "f16": 16, "bf16": 16, "f16x2": 32, "bf16x2": 32}
_SEMANTICS: Final = ("weak", "relaxed", "acquire", "release")
_SCOPES: Final = ("cta", "cluster", "gpu", "sys")
_VECTORS: Final = {"v2": 2, "v4": 4, "v8": 8}
_OPERATIONS: Final = ("add", "min", "max", "and", "or", "xor")
_HALF: Final = ("f16", "bf16", "f16x2", "bf16x2")


def of_each_rank(module: Module, ranks: int, stride: int) -> Module:
    """The module with `multimem` instructions as accesses to the memory of so many ranks. Raises NotSupported."""
    edits = Edits(module)
    for function in module.functions:
        for instruction in function.instructions() if function.body is not None else ():
            row = row_of(instruction)
            if row is not None and row.is_of_many:
                edits.replace(instruction, _Multimem(instruction).text(ranks, stride))
            elif instruction.parts[0] == "multimem":
                raise NotSupported(f"{instruction.opcode} is not followed in a launch of several ranks")
    return parse(edits.apply(), module.name) if len(edits) else module


class _Multimem:
    """One instruction, by its parts."""

    def __init__(self, instruction: Instruction) -> None:
        parts = instruction.parts
        self.kind, self.type = parts[1], parts[-1]
        self.bits = _BITS.get(self.type) or _BITS.get(self.type[1:], 0)
        if not self.bits:
            raise NotSupported(f"{instruction.opcode} is not followed in a launch of several ranks: elements of .{self.type}")
        self.semantics = next((each for each in parts if each in _SEMANTICS), "relaxed" if self.kind == "red" else "weak")
        self.scope = next((f".{each}" for each in parts if each in _SCOPES), ".sys") if self.semantics != "weak" else ""
        self.operation = next((each for each in parts[2:] if each in _OPERATIONS), "")
        self.width = next((count for word, count in _VECTORS.items() if word in parts), 1)
        self.guard = "" if instruction.predicate is None else f"@{'!' * instruction.predicate.negated}{instruction.predicate.register} "
        *_, first, second = (each.text for each in instruction.operands)
        address, value = (second, first) if self.kind == "ld_reduce" else (first, second)
        self.values = [each.strip() for each in value.strip("{} ").split(",")]
        base, _, offset = address.strip("[] ").partition("+")
        self.base, self.offset = base.strip(), int(offset, 0) if offset.strip() else 0

    def text(self, ranks: int, stride: int) -> str:
        """The accesses to all ranks."""
        steps = [self._at(self.base, self.offset + ABOVE), *[self._at("%multimem", stride)] * (ranks - 1)]
        made = [f"{step} {' '.join(self._accesses(rank))}" for rank, step in enumerate(steps)]
        moves = [f"{self.guard}mov.b{self.bits} {value}, %reduced{number};" for number, value in enumerate(self.values)]
        return " ".join(["{", self._registers(), *made, *(moves if self.kind == "ld_reduce" else ()), "}"])

    def _at(self, base: str, offset: int) -> str:
        return f"add.s64 %multimem, {base}, {offset};"

    def _registers(self) -> str:
        bits = self.bits
        loads = f" .reg .b{bits} %reduced<{self.width}>; .reg .b{bits} %loaded<{self.width}>;" if self.kind == "ld_reduce" else ""
        return f".reg .b64 %multimem;{loads}"

    def _accesses(self, rank: int) -> list[str]:
        """Those to the memory of one rank: vectors of at most four elements."""
        return [self._access(rank, part) for part in (range(self.width)[at : at + 4] for at in range(0, self.width, 4))]

    def _access(self, rank: int, part: Sequence[int]) -> str:
        vector, at = (f".v{len(part)}" if len(part) > 1 else ""), f"[%multimem+{part[0] * self.bits // 8}]"
        how = f"{self.guard}{{}}.{self.semantics}{self.scope}.global"
        if self.kind == "red":
            exact = ".noftz" if self.type in _HALF else ""
            return f"{how.format('red')}.{self.operation}{exact}{vector}.{self.type} {at}, {_listed([self.values[each] for each in part])};"
        if self.kind == "st":
            return f"{how.format('st')}{vector}.b{self.bits} {at}, {_listed([self.values[each] for each in part])};"
        into = "loaded" if rank else "reduced"
        load = f"{how.format('ld')}{vector}.b{self.bits} {_listed([f'%{into}{each}' for each in part])}, {at};"
        sums = [f"{self.operation}.{self.type} %reduced{each}, %reduced{each}, %loaded{each};" for each in part if rank]
        return " ".join([load, *sums])


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"
