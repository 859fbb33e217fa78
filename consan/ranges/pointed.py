"""Which words among the parameters the addresses of a kernel's accesses to global memory follow from, for the names of its arrays.

A word that reaches an address may be a pointer, or a number that counts elements: the values of a launch tell which
(session/modules/layouts.py).
Nothing is known of a kernel that reaches memory in another way too: by a pointer that it loads or gets from a call, by a variable of its
module, or through a tensor map.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from consan.instrument.control_flow import Key, definitions, key_of, read
from consan.instrument.isa import MemoryAccess, Row, lookup, row_of
from consan.instrument.ptx import Address, Function, Instruction, Register, Symbol, Vector
from consan.instrument.rewriting.emit import Unsupported, address_parts, register_bits
from consan.ranges.forms import ParameterWord

_POINTER: Final = 8  # bytes
_Made = Mapping[Key, list[Instruction]]  # the instructions that write a register


class _Foreign(Exception):  # noqa: N818
    """An address follows from something else than the parameters."""


def pointed_words(function: Function) -> Mapping[ParameterWord, int]:
    """The words, with the bytes of the elements that are accessed by them; 1 where accesses differ. Empty: they are not all."""
    made, found = definitions(function), dict[ParameterWord, int]()
    places = {parameter.name: number for number, parameter in enumerate(function.params)}
    try:
        for instruction, access in _accesses(function):
            for word in _words(instruction, _base(access), made, places):
                width = access.width_bytes or 1
                found[word] = width if found.get(word, width) == width else 1
    except (_Foreign, ValueError):
        return {}
    return found


def _accesses(function: Function) -> Iterator[tuple[Instruction, MemoryAccess]]:
    for instruction in function.instructions():
        row = lookup(instruction.parts)
        if row is None or row.calls:
            raise _Foreign
        yield from ((instruction, access) for access in row.accesses(instruction) if access.may_be_global)


def _base(access: MemoryAccess) -> Register:
    try:
        base = None if access.address is None else address_parts(access.address)[0]
    except Unsupported:
        base = None
    if not isinstance(base, Register):
        raise _Foreign
    return base


def _words(
    instruction: Instruction, base: Register, made: Mapping[Key, list[Instruction]], places: Mapping[str, int]
) -> set[ParameterWord]:
    """The words that an address follows from."""
    found, seen, pending = set[ParameterWord](), set[Key](), [key_of(instruction.scope, base.name)]
    while pending:
        key = pending.pop()
        if key in seen:
            continue
        seen.add(key)
        for each in made.get(key, ()):
            row = row_of(each)
            if row.is_load:
                found |= _loaded(each, row, key, places)
            elif row.is_arithmetic or row.is_of_addresses:
                pending += _registers(each)
            elif _wide(each, key):
                raise _Foreign
    return found


def _registers(instruction: Instruction) -> Iterator[Key]:
    if any(isinstance(operand, Symbol) for operand in instruction.operands[1:]):
        raise _Foreign  # the address of a variable
    yield from (key_of(instruction.scope, name) for name in read(instruction) if instruction.scope.is_register(name))


def _loaded(instruction: Instruction, row: Row, key: Key, places: Mapping[str, int]) -> set[ParameterWord]:
    """The word of the parameters that a load brings into a register. A loaded number is none, and no pointer has fewer than 64 bits."""
    access = row.describe(instruction)
    base, offset = (access.address.base, access.address.offset) if isinstance(access.address, Address) else (access.address, 0)
    if not _wide(instruction, key):
        return set()
    if not access.is_parameter or not isinstance(base, Symbol) or base.name not in places:
        raise _Foreign
    target = instruction.operands[0]
    elements = target.elements if isinstance(target, Vector) else (target,)
    number = next(i for i, each in enumerate(elements) if isinstance(each, Register) and key_of(instruction.scope, each.name) == key)
    begin = offset + number * access.width_bytes
    return {ParameterWord(places[base.name], begin, begin + _POINTER)} if access.width_bytes == _POINTER else set()


def _wide(instruction: Instruction, key: Key) -> bool:
    return register_bits(key[1], instruction.scope) == _POINTER * 8
