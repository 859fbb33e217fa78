"""The names of bytes of surfaces in the log (instrument/surfaces.py): there they stand where an address in global memory does."""

from __future__ import annotations

from typing import Final

from consan.instrument import surfaces
from consan.instrument.isa import lookup
from consan.instrument.ptx import Instruction, Operand, TensorAddress
from consan.instrument.rewriting.emit import Snippet, Unsupported, wide_address, word

SURFACE: Final = "surface"  # the family, and the space of its accesses


def name_of(snippet: Snippet, instruction: Instruction, operand: Operand) -> str:
    """A 64-bit register with the name of the first byte that an instruction accesses."""
    row = lookup(instruction.parts)
    if row is None or not isinstance(operand, TensorAddress):
        raise Unsupported(f"{instruction.opcode} without a surface")
    modifiers = row.modifiers(instruction.parts)
    step = row.describe(instruction).width_bytes if "p" in modifiers else 1
    name, part = wide_address(snippet, operand.base, instruction.scope, "global"), snippet.register("b64")
    snippet.add(f"and.b64 {part}, {name}, {(1 << surfaces.HANDLE_BITS) - 1}; shl.b64 {part}, {part}, {surfaces.HANDLE};")
    result = snippet.register("b64")
    snippet.add(f"or.b64 {result}, {part}, {surfaces.FIRST};")
    coordinates = surfaces.in_order(modifiers["geom"], operand.coords)
    for number, (at, bits) in enumerate(surfaces.fields(modifiers["geom"])):
        low = snippet.register("b32")
        snippet.add(f"mov.b32 {low}, {word(coordinates[number], snippet, instruction.scope)};")
        if not number and step > 1:
            snippet.add(f"mul.lo.u32 {low}, {low}, {step};")
        snippet.add(f"cvt.u64.u32 {part}, {low}; and.b64 {part}, {part}, {(1 << bits) - 1};")
        snippet.add(f"shl.b64 {part}, {part}, {at}; or.b64 {result}, {result}, {part};")
    return result
