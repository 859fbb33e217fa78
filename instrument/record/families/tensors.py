"""The words of a tensor copy: what its tensor map and its coordinates say (ISA "Tensor-map").

The issuing thread loads the map's words that matter: from the kernel's parameters, where the map certainly is one, because such loads need
neither time nor registers. The address of the tensor and the coordinates are not hashed: they differ in each CTA. For a map that may be in
global memory there is its address, too.
consan/checker/source/basis/tensors.hpp reads these words in the same order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from consan.instrument.control_flow import guard_of
from consan.instrument.ptx import Instruction, Operand, TensorAddress
from consan.instrument.record.analyses.computed import Computability
from consan.instrument.record.analyses.launch_inputs import LaunchConstant, parameter_place
from consan.instrument.record.text import text
from consan.instrument.record.text.words import NO_KEYS, TEMPORARY, TextVariant, Words, keys_of
from consan.instrument.rewriting.context import Work
from consan.instrument.rewriting.emit import Snippet, Unsupported, word
from consan.instrument.rewriting.tensor_operands import in_parameter, map_address

if TYPE_CHECKING:
    from consan.instrument.record.recorder import FunctionRecorder

# Words of a map (consan/tensormap/encoding.py): the address of the tensor; what kind it is, the upper bits of strides, steps and the
# innermost size of the box, its other sizes, the bytes of a box of an unknown type. Then, for each dimension, its stride and its extent.
_WORD_BYTES = 4
_ADDRESS = (0, 1)
TILE_WORDS = (2, 7, 13, 14, 16)
IM2COL_WORDS = (2, 7, 13, 15, 16)  # with the pixels in place of the box
_STRIDES, _EXTENTS = 3, 8
_IM2COL_MODES = frozenset({"im2col", "im2col_no_offs"})


def map_in_memory(kernel: FunctionRecorder, work: Work) -> bool:
    """Whether a tensor map may be in global memory, where it can change."""
    return not (kernel.plan.is_entry and in_parameter(work, kernel.facts.definitions))


def stored(kernel: FunctionRecorder, work: Work, name: str, operand: Operand) -> dict[str, Any]:
    """Store the words of a tensor copy: the position of the first, and whether the map is among them."""
    if not isinstance(operand, TensorAddress):
        raise Unsupported("tensor operand")
    return {name: _add_words(kernel, work, operand), "map": map_in_memory(kernel, work)}


def _add_words(kernel: FunctionRecorder, work: Work, tensor: TensorAddress) -> int:
    instruction, block = work.instruction, kernel.open_block()
    rank, snippet = int(work.row.modifiers(instruction.parts)["dim"][0]), Snippet()
    for coordinate in tensor.coords:
        block.level(keys_of([coordinate], instruction.scope), hashed=False)
    parameter, offset = parameter_place(kernel.facts.definitions, tensor.base, work.instruction.scope) if kernel.plan.is_entry else ("", 0)
    words = TILE_WORDS if _IM2COL_MODES.isdisjoint(work.words) else IM2COL_WORDS
    hashed = (*words, *(_STRIDES + k for k in range(rank - 1)), *(_EXTENTS + k for k in range(rank)))
    needs = _needs(instruction, parameter, [offset + _WORD_BYTES * number for number in (*_ADDRESS, *hashed)], block)
    if block.variant is not TextVariant.FULL:
        first, code = _known_words(block, instruction, tensor, needs)
        kernel.pending += code
        return first
    address = parameter or map_address(work, tensor, snippet)
    load, value = f"ld{'.param' if parameter else ''}.u32", snippet.register("b32")
    first = block.template.words
    folded = snippet.register("b32"), snippet.register("b32")
    snippet.add("".join(f"mov.b32 {register}, 0;" for register in folded))
    for number in (*_ADDRESS, *hashed):
        snippet.add(f"{load} {value}, [{address}+{offset + _WORD_BYTES * number}];")
        block.append(value, snippet)
        if number not in _ADDRESS:
            snippet.add(text.fold(value, folded))
    for coordinate in tensor.coords:
        snippet.add(f"mov.b32 {value}, {word(coordinate, snippet, instruction.scope)};")
        block.append(value, snippet)
    if map_in_memory(kernel, work):
        high = snippet.register("b32")
        snippet.add(f"mov.b64 {{{value}, {high}}}, {map_address(work, tensor, snippet)};")
        block.append(value, snippet)
        block.append(high, snippet)
    snippet.add("".join(map(text.hash_word, folded)))
    kernel.pending += only_where(instruction, snippet.text())
    return first


def _needs(instruction: Instruction, parameter: str, places: list[int], block: Words) -> list[LaunchConstant]:
    """The words of a map in the parameters. The host must be able to compute who issues the copy."""
    if not parameter:
        block.refuse("a tensor map in memory")
        return []
    words = [LaunchConstant(parameter, place, _WORD_BYTES) for place in places]
    block.level(NO_KEYS, hashed=False, constants=tuple(words[: len(_ADDRESS)]))
    block.level(NO_KEYS, hashed=True, constants=tuple(words[len(_ADDRESS) :]))
    guard = guard_of(instruction)
    if guard is not None and block.level(frozenset({guard.register}), hashed=True) is Computability.UNKNOWN:
        block.refuse("a guard that is not known")
    return words


def _known_words(block: Words, instruction: Instruction, tensor: TensorAddress, constants: list[LaunchConstant]) -> tuple[int, str]:
    """The words where the host has those of the map: coordinates that it cannot compute are stored."""
    first, parts = block.template.words, list[str]()
    for constant in constants:
        snippet = Snippet()
        value = snippet.register("b32")
        snippet.add(block.constant(constant, "").replace(TEMPORARY, value).strip())
        parts.append(block.unhashed([value], snippet, NO_KEYS)[1])
    for coordinate in tensor.coords:
        snippet = Snippet()
        value = word(coordinate, snippet, instruction.scope)
        if value.isdecimal():
            register = snippet.register("b32")
            snippet.add(f"mov.u32 {register}, {value};")
            value = register
        parts.append(block.unhashed([value], snippet, keys_of([coordinate], instruction.scope))[1])
    code = "".join(parts)
    return first, only_where(instruction, code) if code else ""


def only_where(instruction: Instruction, inserted: str) -> str:
    """Text for the threads that execute an instruction: the others have no use for the words, and storing them takes time."""
    predicate, label = instruction.predicate, f"$__consan_idle{instruction.start}"
    return inserted if predicate is None else f"@{'' if predicate.negated else '!'}{predicate.register} bra {label};\n{inserted}{label}:\n"
