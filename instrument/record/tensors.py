"""The words of a tensor copy: what its tensor map and its coordinates say (ISA "Tensor-map").

The issuing thread loads the map's words that matter. The address of the tensor and the coordinates are not hashed: they differ in each CTA.
consan/checker/source/tensors.hpp reads these words in the same order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from consan.instrument.passes.context import Work, operand_of
from consan.instrument.passes.emit import Snippet, Unsupported, guard_text, word
from consan.instrument.passes.tensor_operands import map_address
from consan.instrument.ptx import TensorAddress

if TYPE_CHECKING:
    from consan.instrument.record.rewrite import Kernel

# Words of a map (consan/tensormap/encoding.py): the address of the tensor; what kind it is, the upper bits of strides, steps and the
# innermost size of the box, its other sizes, the bytes of a box of an unknown type. Then, for each dimension, its stride and its extent.
_ADDRESS = (0, 1)
_ALL = (2, 7, 13, 14, 16)
_STRIDES, _EXTENTS = 3, 8


def add_words(kernel: Kernel, work: Work) -> tuple[int, int]:
    """The first word, and the number of dimensions."""
    tensor, instruction, block = operand_of(work, "tensor"), work.instruction, kernel.open_block()
    if not isinstance(tensor, TensorAddress):
        raise Unsupported("tensor operand")
    rank, snippet, guard = len(tensor.coords), Snippet(), guard_text(instruction)
    address, value = map_address(work, tensor, snippet), snippet.register("b32")
    first = block.template.words
    hashed = (*_ALL, *(_STRIDES + k for k in range(rank - 1)), *(_EXTENTS + k for k in range(rank)))
    for number in (*_ADDRESS, *hashed):
        snippet.add(f"mov.b32 {value}, 0;")
        snippet.add(f"{guard}ld.u32 {value}, [{address}+{4 * number}];")
        block.append(value, snippet, hashed=number not in _ADDRESS)
    for coordinate in tensor.coords:
        snippet.add(f"mov.b32 {value}, {word(coordinate, snippet, instruction.scope)};")
        block.append(value, snippet, hashed=False)
    kernel.pending += snippet.text()
    return first, rank
