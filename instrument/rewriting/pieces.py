"""The parts of one access: at most 16 bytes each, and those that nothing reads apart from the others."""

from __future__ import annotations

from consan.dataclass import dataclass
from consan.instrument.isa import MemoryAccess
from consan.instrument.ptx import Operand, Underscore, Vector
from consan.instrument.rewriting.context import FunctionPlan, Work, operand_of
from consan.instrument.rewriting.lifted import is_thrown_away

WIDTHS = (1, 2, 4, 8, 16, 32)
"""Bytes of the accesses that are followed. One of 32 is two of 16 (`pieces`)."""
_WIDEST = 16


@dataclass(frozen=True)
class Piece:
    """Bytes of an access with their own hook and site."""

    offset: int
    size: int
    unused: bool = False


def pieces(plan: FunctionPlan, work: Work, access: MemoryAccess, nbytes: int) -> list[Piece]:
    """Split an access of 32 bytes into halves, and a load into the parts that something reads and those that nothing reads (R-UNINIT).

    Compilers widen loads to whole vectors, which may include padding or data of others. A vector load is a scalar load of each element
    ("Vector Data-types", 8.2.4), and a register that is named nowhere else in the function has no effect. A load whose registers are all
    unused stays whole: then the source asks for the load. Not so an `ldmatrix`, which compilers leave in place: Pallas makes one of the
    old value of `ref[...] = x`. A load whose value is thrown away is unused (`lifted`).
    """
    if work.row.is_matrix_access:
        return [Piece(0, nbytes, unused=all(_unused(plan, operand_of(work, "dst"))) and not access.writes)]
    target = operand_of(work, "dst") if work.row.is_load and access.in_shared and not access.is_strong else None
    if is_thrown_away(target):
        return [Piece(offset, min(nbytes, _WIDEST), unused=True) for offset in range(0, nbytes, _WIDEST)]
    if not isinstance(target, Vector):
        return [Piece(offset, min(nbytes, _WIDEST)) for offset in range(0, nbytes, _WIDEST)]
    width = access.width_bytes
    unused = _unused(plan, target)
    if all(unused) or not any(unused):
        return [Piece(0, nbytes)]
    pieces: list[Piece] = []
    for index, alone in enumerate(unused):
        pieces.append(Piece(index * width, width, alone))
        while len(pieces) > 1 and (both := _joined(*pieces[-2:])):
            pieces[-2:] = [both]
    return pieces


def _unused(plan: FunctionPlan, target: Operand | None) -> list[bool]:
    """Whether nothing reads it, for each register of a vector."""
    elements = target.elements if isinstance(target, Vector) else ()
    return [isinstance(element, Underscore) or plan.names[element.text] < 2 for element in elements]


def _joined(left: Piece, right: Piece) -> Piece | None:
    """Two neighbours as one piece, if one hook can take both: aligned, and a power of two of bytes."""
    fits = (left.size, left.unused) == (right.size, right.unused) and left.offset % (2 * left.size) == 0
    return Piece(left.offset, 2 * left.size, left.unused) if fits else None
