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
from consan.instrument.isa import Row, row_of
from consan.instrument.isa.model import WEAK
from consan.instrument.ptx import Address, Edits, Instruction, Module, Vector, parse

ABOVE: Final = 1 << 46
_BITS: Final = {"f16": 16, "bf16": 16, "f16x2": 32, "bf16x2": 32, **{f"{kind}{bits}": bits for kind in "busf" for bits in (32, 64)}}
_WIDTHS: Final = {"v2": 2, "v4": 4, "v8": 8}


def of_each_rank(module: Module, ranks: int, stride: int) -> Module:
    """The module with `multimem` instructions as accesses to the memory of so many ranks. Raises NotSupported."""
    edits = Edits(module)
    for function in module.functions:
        for instruction in function.instructions() if function.body is not None else ():
            row = row_of(instruction)
            if row is not None and row.names_many:
                edits.replace(instruction, _text(_Multimem(instruction, row), ranks, stride))
    return parse(edits.apply(), module.name) if len(edits) else module


class _Multimem:
    """One instruction, by its parts."""

    def __init__(self, instruction: Instruction, row: Row) -> None:
        parts = row.modifiers(instruction.parts)
        self.type, self.operation = parts.get("type", ""), parts.get("op", "")
        self.bits = _BITS.get(self.type, 0)
        if not row.is_of_many or not self.bits:
            raise NotSupported(f"{instruction.opcode} is not followed in a launch of several ranks")
        meaning = row.semantics(parts)
        self.how = ".weak.global" if meaning == WEAK else f".{meaning.sem}.{meaning.scope}.global"
        self.width = _WIDTHS.get(parts.get("vec", ""), 1)
        self.guard = "" if instruction.predicate is None else f"@{'!' * instruction.predicate.negated}{instruction.predicate.register} "
        (address,) = (each for each in instruction.operands if isinstance(each, Address))
        (value,) = (each for each in instruction.operands if each is not address)
        self.base, self.offset = address.base.text, address.offset
        self.values = [each.text for each in (value.elements if isinstance(value, Vector) else (value,))]
        self.access = _ACCESSES[row.name]

    def chunks(self) -> list[range]:
        """The elements of each access to the memory of one rank: at most four."""
        return [range(self.width)[at : at + 4] for at in range(0, self.width, 4)]

    def at(self, part: range) -> str:
        """The address of a part of the memory of a rank."""
        return f"[%multimem+{part[0] * self.bits // 8}]"


def _text(each: _Multimem, ranks: int, stride: int) -> str:
    """The accesses to all ranks."""
    begins = [f"{each.base}, {each.offset + ABOVE}", *[f"%multimem, {stride}"] * (ranks - 1)]
    made = [
        f"add.s64 %multimem, {begin}; " + " ".join(each.access(each, rank, part) for part in each.chunks())
        for rank, begin in enumerate(begins)
    ]
    registers = f".reg .b64 %multimem; .reg .b{each.bits} %reduced<{each.width}>; .reg .b{each.bits} %loaded<{each.width}>;"
    moves = [f"{each.guard}mov.b{each.bits} {value}, %reduced{number};" for number, value in enumerate(each.values)]
    return " ".join(["{", registers, *made, *(moves if each.access is _load else ()), "}"])


def _load(each: _Multimem, rank: int, part: range) -> str:
    into = "loaded" if rank else "reduced"
    load = f"{each.guard}ld{each.how}{_vector(part)}.b{each.bits} {_listed([f'%{into}{one}' for one in part])}, {each.at(part)};"
    sums = [f"{each.operation}.{each.type} %reduced{one}, %reduced{one}, %loaded{one};" for one in part if rank]
    return " ".join([load, *sums])


def _store(each: _Multimem, rank: int, part: range) -> str:
    return f"{each.guard}st{each.how}{_vector(part)}.b{each.bits} {each.at(part)}, {_listed([each.values[one] for one in part])};"


def _reduction(each: _Multimem, rank: int, part: range) -> str:
    operation = f"{each.operation}{'.noftz' * ('f16' in each.type)}{_vector(part)}.{each.type}"
    return f"{each.guard}red{each.how}.{operation} {each.at(part)}, {_listed([each.values[one] for one in part])};"


def _vector(part: range) -> str:
    return f".v{len(part)}" if len(part) > 1 else ""


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"


_ACCESSES: Final = {"multimem.ld_reduce": _load, "multimem.st": _store, "multimem.red": _reduction}
