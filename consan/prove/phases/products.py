"""The operands of a matrix product of a warpgroup in shared memory, by their descriptors (ISA "wgmma.mma_async", "Matrix Descriptor").

A descriptor holds the address of its operand in units of 16 bytes, and above it what the text says: strides and the swizzle. So an address
in shared memory that is shifted right by four has a base of its own (`MATRIX`), and numbers are added to it. `WINDOW` is an address without
the bits above those that a descriptor has: only a shift makes something of it.

Lines of a swizzle pattern begin at multiples of their size. A variable that its declaration does not align so is assumed to begin there.

An operand is all bytes between its first and its last one. Its address must be shown to stay in its variable, so nothing is carried into
the bits above it. One lane reads for its warp: all lanes execute a product, its commit and its wait together.
"""

from __future__ import annotations

from typing import Final

from consan.dataclass import dataclass
from consan.instrument.rewriting.matrix_operands import OperandInMemory
from consan.prove.numbers import Base, Number, Symbols, minus, number, times
from consan.prove.solver import Formula, addends, z3

WINDOW: Final = "window"
MATRIX: Final = "matrix"
CHUNK: Final = 16  # bytes: the unit of addresses and strides
_ADDRESS_BITS: Final = 18  # of an address in a descriptor
_FIELD: Final = (1 << _ADDRESS_BITS - 4) - 1
_ALL: Final = (1 << 64) - 1
_LEADING, _STRIDE, _MODE = 16, 32, 62  # the bits at which fields begin


def masked(base: Base, address: Number, mask: int, symbols: Symbols) -> Number | None:
    """The bits of an address, or of what a descriptor has of it, that a mask has; None: others are left out."""
    if base[0] == MATRIX:
        return address if mask & _FIELD == _FIELD and not _constant(address.term) >> 16 else None
    low = mask & -mask
    whole = mask & (1 << _ADDRESS_BITS) - 1 == (1 << _ADDRESS_BITS) - low
    if base[0] != "shared" or not whole or symbols.shared.aligned.get(base[1], 1) < low:
        return None
    return times(symbols.quotient(address.on(None), low), number(low)).on((WINDOW, base[1]))


def shifted(address: Number, by: int, symbols: Symbols) -> Number | None:
    """An address in shared memory in units of 16 bytes; None: in others."""
    if address.base is None or address.base[0] not in ("shared", WINDOW) or 1 << by != CHUNK:
        return None
    if symbols.shared.aligned.get(address.base[1], 1) < CHUNK:
        return None
    return symbols.quotient(address.on(None), CHUNK).on((MATRIX, address.base[1]))


@dataclass(frozen=True)
class Operand:
    """The bytes of an operand: a variable, the distance of the first one, and how many at most."""

    name: str
    low: Number
    nbytes: int


def operand_of(form: OperandInMemory, descriptor: Number, symbols: Symbols) -> Operand | None:
    """The bytes of an operand; None: they do not follow from the descriptor's text."""
    if descriptor.base is None or descriptor.base[0] != MATRIX:
        return None
    upper = fields_of(descriptor)
    place = minus(descriptor.on(None), number(upper))
    found = _Fields(upper & _ALL)
    name = descriptor.base[1]
    lines = symbols.quotient(place, found.width)
    low = times(lines, number(CHUNK * found.width))
    nbytes = found.span(form) + 8 * CHUNK * found.width
    if symbols.shared.aligned.get(name, 1) < CHUNK * found.width:
        symbols.shared.begins[f"{name or 'dynamic shared memory'} begins at a multiple of {CHUNK * found.width} bytes"] = None
    return Operand(name, low, nbytes)


def fields_of(descriptor: Number) -> int:
    """The bits above the address: numbers that are added to that are small, and may be negative."""
    return _constant(descriptor.term) + (1 << 15) >> 16 << 16


def _constant(term: Formula) -> int:
    """The numbers of a sum."""
    return sum(count * each.as_long() for each, count in addends(term, 1) if z3.is_int_value(each))


@dataclass(frozen=True)
class _Fields:
    """The fields of a descriptor beside the address."""

    bits: int

    @property
    def width(self) -> int:
        """The units in a line of the swizzle pattern."""
        mode = self.bits >> _MODE
        return CHUNK >> mode if mode else 1

    def span(self, form: OperandInMemory) -> int:
        """The distance between the first and the last pattern of eight lines (ISA "Strides")."""
        leading, stride = ((self.bits >> begin & _FIELD) * CHUNK for begin in (_LEADING, _STRIDE))
        if not form.major:
            return ((form.rows + 7) // 8 - 1) * stride + ((form.depth - 1) * leading if self.width == 1 else 0)
        across, along = (stride, leading) if self.width == 1 else (leading, stride)
        return ((form.depth + 7) // 8 - 1) * along + (-(-form.rows // 8 // self.width) - 1) * across
