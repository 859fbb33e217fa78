"""Instructions that get addresses of variables in registers, in place of the variables' names (ISA "Addresses as Operands").

Constant memory is read through global memory then: the addresses are those of the memory behind it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from consan._errors import NotSupported
from consan.instrument.isa.queries import flow_of
from consan.instrument.ptx import Address, Instruction, SymbolOffset

_WORD: Final = re.compile(r"[A-Za-z_$%][\w$]*")
_CONSTANT: Final = "const"
_OF_CONSTANTS: Final = ("ld", "cvta")
_OF_ADDRESSES: Final = ("mov", "cvta")


def with_addresses(instruction: Instruction, registers: Mapping[str, str]) -> str:
    """The instruction's text with these registers for variables; its own text if it names none. Raises NotSupported."""
    named = [word for word in _WORD.findall(instruction.text) if word in registers]
    opcode = _in_global_memory(instruction)
    if not named:
        return instruction.text.replace(instruction.opcode, opcode, 1)
    offset = next((each for each in instruction.operands if isinstance(each, SymbolOffset) and each.base.name in registers), None)
    indexed = any(isinstance(each, Address) and each.index is not None for each in instruction.operands)
    if flow_of(instruction) or indexed or (offset is not None and instruction.parts[0] not in _OF_ADDRESSES):
        raise NotSupported(f"its variable {named[0]} is used by {' '.join(instruction.text.split())}")
    if offset is not None:
        head, _, rest = instruction.text.partition(instruction.opcode)
        return f"{head}add.s64{rest.replace(offset.text, f'{registers[offset.base.name]}, {offset.offset}')}"
    return _WORD.sub(lambda found: registers.get(found[0], found[0]), instruction.text.replace(instruction.opcode, opcode, 1))


def _in_global_memory(instruction: Instruction) -> str:
    """The opcode, for global memory where it is for constant memory. Raises NotSupported."""
    if _CONSTANT not in instruction.parts:
        return instruction.opcode
    if instruction.parts[0] not in _OF_CONSTANTS:
        raise NotSupported(f"{instruction.opcode} names constant memory")
    return instruction.opcode.replace(f".{_CONSTANT}", ".global", 1)
