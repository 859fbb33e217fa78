"""The words of a tensor copy: what its tensor map and its coordinates say (ISA "Tensor-map").

The issuing thread loads the map's words that matter: from the kernel's parameters, where the map certainly is one, because such loads need
neither time nor registers. The address of the tensor and the coordinates are not hashed: they differ in each CTA.
consan/checker/source/tensors.hpp reads these words in the same order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from consan.instrument.isa import has_action
from consan.instrument.passes.context import Work, operand_of
from consan.instrument.passes.emit import Snippet, Unsupported, word
from consan.instrument.passes.flow import Key, key_of
from consan.instrument.passes.tensor_operands import gives_parameter, map_address
from consan.instrument.ptx import Instruction, Register, Symbol, TensorAddress
from consan.instrument.record import text

if TYPE_CHECKING:
    from consan.instrument.record.rewrite import KernelRewrite

# Words of a map (consan/tensormap/encoding.py): the address of the tensor; what kind it is, the upper bits of strides, steps and the
# innermost size of the box, its other sizes, the bytes of a box of an unknown type. Then, for each dimension, its stride and its extent.
_ADDRESS = (0, 1)
_ALL = (2, 7, 13, 14, 16)
_STRIDES, _EXTENTS = 3, 8


def add_words(kernel: KernelRewrite, work: Work) -> tuple[int, int]:
    """The first word, and the number of dimensions."""
    tensor, instruction, block = operand_of(work, "tensor"), work.instruction, kernel.open_block()
    if not isinstance(tensor, TensorAddress):
        raise Unsupported("tensor operand")
    rank, snippet = len(tensor.coords), Snippet()
    parameter = _parameter(work, tensor, kernel.definitions) if kernel.plan.is_entry else ""
    address = parameter or map_address(work, tensor, snippet)
    load, value = f"ld{'.param' if parameter else ''}.u32", snippet.register("b32")
    first = block.template.words
    hashed = (*_ALL, *(_STRIDES + k for k in range(rank - 1)), *(_EXTENTS + k for k in range(rank)))
    folded = snippet.register("b32"), snippet.register("b32")
    snippet.add("".join(f"mov.b32 {register}, 0;" for register in folded))
    for number in (*_ADDRESS, *hashed):
        snippet.add(f"{load} {value}, [{address}+{4 * number}];")
        block.append(value, snippet)
        if number not in _ADDRESS:
            snippet.add(text.fold(value, folded))
    for coordinate in tensor.coords:
        snippet.add(f"mov.b32 {value}, {word(coordinate, snippet, instruction.scope)};")
        block.append(value, snippet)
    snippet.add("".join(map(text.hash_word, folded)))
    kernel.pending += only_where(instruction, snippet.text())
    return first, rank


def only_where(instruction: Instruction, inserted: str) -> str:
    """Text for the threads that execute an instruction: the others have no use for the words, and storing them takes time."""
    predicate, label = instruction.predicate, f"$__consan_idle{instruction.start}"
    return inserted if predicate is None else f"@{'' if predicate.negated else '!'}{predicate.register} bra {label};\n{inserted}{label}:\n"


def _parameter(work: Work, tensor: TensorAddress, made: dict[Key, list[Instruction]]) -> str:
    """The name of the kernel parameter that the map is; empty if that is not certain."""
    base, scope = tensor.base, work.instruction.scope
    while isinstance(base, (Register, Symbol)) and scope.is_register(base.name):
        definitions = made.get(key_of(scope, base.name), [])
        if len(definitions) != 1 or not _passes_on(definitions[0]):
            return ""
        (definition,) = definitions
        base, scope = definition.operands[-1], definition.scope
    return base.name if isinstance(base, Symbol) else ""


def _passes_on(instruction: Instruction) -> bool:
    """Whether the result names what the operand names: a move, or the conversion of a parameter's address to a generic one."""
    return instruction.predicate is None and (has_action(instruction, "arithmetic", "move") or gives_parameter(instruction))
