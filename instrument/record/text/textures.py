"""The names of what fetches read in the log (instrument/textures.py): there they stand where an address in global memory does.

A texture reference of the module has a handle, too: `mov` of its name gives it (PTX ISA "Texture, Sampler and Surface Types").
"""

from __future__ import annotations

from typing import Final

from consan.instrument import textures
from consan.instrument.isa import lookup, names_element
from consan.instrument.ptx import Instruction, Operand, Symbol, TensorAddress
from consan.instrument.rewriting.emit import Snippet, Unsupported, wide_address, word

TEXTURE: Final = "texture"  # the space of its accesses


def name_of(snippet: Snippet, instruction: Instruction, operand: Operand) -> str:
    """A 64-bit register with the name of the element that an instruction fetches, or of any elements of its texture."""
    row = lookup(instruction.parts)
    if row is None or not isinstance(operand, TensorAddress):
        raise Unsupported(f"{instruction.opcode} without a texture")
    if isinstance(operand.base, Symbol) and _is_parameter(operand.base.name, instruction):
        raise Unsupported(f"{instruction.opcode} of the parameter {operand.base.name}, whose handle cannot be read: pass a texture object")
    handle = wide_address(snippet, operand.base, instruction.scope, "global")
    result, index = snippet.register("b64"), snippet.register("b64")
    snippet.add(f"and.b64 {result}, {handle}, {(1 << textures.HANDLE_BITS) - 1}; shl.b64 {result}, {result}, {textures.HANDLE};")
    snippet.add(f"or.b64 {result}, {result}, {textures.FIRST};")
    if names_element(instruction):
        low = snippet.register("b32")
        snippet.add(f"mov.b32 {low}, {word(operand.coords[0], snippet, instruction.scope)};")
        snippet.add(f"cvt.u64.u32 {index}, {low}; add.u64 {index}, {index}, 1;")
        snippet.add(f"min.u64 {index}, {index}, {(1 << textures.INDEX_BITS) - 1}; or.b64 {result}, {result}, {index};")
    return result


def _is_parameter(name: str, instruction: Instruction) -> bool:
    return instruction.scope.lookup(name) is None and instruction.scope.parameter(name) is not None
