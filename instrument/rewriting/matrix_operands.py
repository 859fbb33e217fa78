"""The operands of a matrix product of a warpgroup that are in shared memory (ISA "wgmma.mma_async").

Rows, depth and major come from the opcode and its immediates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from consan.dataclass import dataclass
from consan.instrument.isa import row_of
from consan.instrument.ptx import Immediate, Instruction, Operand, Vector
from consan.instrument.rewriting.emit import Unsupported

_SHAPE = re.compile(r"m64n(\d+)k(\d+)$")
_ROWS_OF_A = 64
_VALUES = 2  # operands of a dense product that are registers, but for the accumulators and descriptors
_K_CHUNKS = 2  # an instruction is always 32 bytes deep, and B of a sparse one twice as much


@dataclass(frozen=True)
class OperandInMemory:
    """A matrix in shared memory. `depth`: chunks along K, or elements if `major` is 1 (transposed)."""

    descriptor: Operand
    rows: int
    depth: int
    major: int
    own_rows: bool  # each warp of the warpgroup reads a quarter of the rows


def operands_in_memory(instruction: Instruction) -> Iterator[OperandInMemory]:
    """B, and A if it is in memory."""
    row = row_of(instruction)
    shape = next((m for word in row.modifiers(instruction.parts).values() if (m := _SHAPE.match(word))), None)
    operands = instruction.operands
    if shape is None or len(operands) < 3:
        raise Unsupported(instruction.opcode)
    columns, depth = int(shape[1]), int(shape[2])
    values = [
        place for place, role in enumerate(row_of(instruction).roles(instruction)) if role == "src"
    ]  # A, the metadata of a sparse product, scale-d
    sparse = len(values) > _VALUES
    immediates = [int(o.value) for o in operands[values[-1] + 1 :] if isinstance(o, Immediate)]
    in_registers = isinstance(operands[1], Vector)
    # The transpositions follow the scales of A and B. A in registers has none.
    transposed = immediates[2:]
    major_b = transposed[-1] if transposed else 0
    major_a = transposed[0] if len(transposed) == 2 else 0
    if not in_registers:
        yield OperandInMemory(operands[1], _ROWS_OF_A, (depth >> sparse) if major_a else _K_CHUNKS, major_a, own_rows=True)
    yield OperandInMemory(operands[2], columns, depth if major_b else _K_CHUNKS << sparse, major_b, own_rows=False)
