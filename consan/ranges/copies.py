"""Reads bulk copies, tensor copies and their reductions from the text (ISA "cp.async.bulk", "cp.async.bulk.tensor").

A tensor map is followed if it lies in a parameter. A map that the kernel makes, or that lies in memory, may have changed before the copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from consan.instrument.control_flow import Key, key_of
from consan.instrument.isa import MemoryAccess, Row, adds, row_of
from consan.instrument.ptx import Immediate, Instruction, Operand, Register, Symbol, TensorAddress
from consan.ranges.forms import BoxForm, NotProven, ParameterWord, Source
from consan.tensormap.description import NBYTES

TENSOR_COPIES: Final = frozenset({"cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor"})
BULK_COPIES: Final = TENSOR_COPIES | {"cp.async.bulk", "cp.reduce.async.bulk"}
_TILED: Final = frozenset({"", "tile"})
_MODES: Final = ("load_mode", "store_mode", "reduce_mode")
_ADDRESS: Final = 8  # bytes of the address in a map
_NO_PARAMETER: Final = "its tensor map is no parameter"


def check_mode(instruction: Instruction, row: Row) -> None:
    """Raise `NotProven` for a tensor copy whose box has another form than a tile."""
    modifiers = row.modifiers(instruction.parts)
    mode = next((modifiers[each] for each in _MODES if modifiers.get(each)), "")
    if mode not in _TILED:
        raise NotProven(f"copies with {mode} are not followed", never=True)


def coordinates(access: MemoryAccess) -> tuple[Operand, ...]:
    """Those of a tensor copy; nothing else has some."""
    return access.address.coords if isinstance(access.address, TensorAddress) else ()


class ParameterMaps:
    """The tensor maps among the parameters. `made`: the instructions that write each register."""

    def __init__(self, made: Mapping[Key, list[Instruction]], parameters: tuple[tuple[str, int], ...]) -> None:
        self._made = made
        self._places = {name: (number, nbytes) for number, (name, nbytes) in enumerate(parameters)}

    def box(self, instruction: Instruction, access: MemoryAccess, source: Callable[[Operand], Source]) -> BoxForm | None:
        """The box of a tensor copy. `source`: where the value of an operand is. Raises `NotProven`."""
        if not isinstance(access.address, TensorAddress):
            return None
        name, begin = self._place(instruction, access.address.base)
        number, nbytes = self._places[name]
        if not 0 <= begin <= nbytes - NBYTES:
            raise NotProven(_NO_PARAMETER, never=True)
        middle, end = begin + _ADDRESS, begin + NBYTES
        words = ParameterWord(number, begin, middle), ParameterWord(number, middle, end)
        return BoxForm(*words, tuple(source(each) for each in access.address.coords))

    def _place(self, instruction: Instruction, operand: Operand) -> tuple[str, int]:
        """The name of the parameter that an address is in, and how far from its begin."""
        if isinstance(operand, Symbol) and operand.name in self._places:
            return operand.name, 0
        made = self._made.get(key_of(instruction.scope, operand.name), ()) if isinstance(operand, Register) else ()
        if len(made) == 1 and made[0].predicate is None:
            for base, offset in _moved(made[0]):
                name, begin = self._place(made[0], base)
                return name, begin + offset
        raise NotProven(_NO_PARAMETER, never=True)


def _moved(instruction: Instruction) -> Iterator[tuple[Operand, int]]:
    """The address that an instruction moves or adds to, and the number that it adds; nothing for other instructions."""
    first, rest = instruction.operands[1], instruction.operands[2:]
    row = row_of(instruction)
    if (row.moves or row.converts_address) and not rest:
        yield first, 0
    elif adds(instruction) and isinstance(rest[0], Immediate):
        yield first, int(rest[0].value)
