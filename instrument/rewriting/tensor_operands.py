"""The operands of tensor copies that hooks take: the tensor map and the coordinates (ISA "cp.async.bulk.tensor")."""

from __future__ import annotations

from consan.instrument.abi.hooks import Value
from consan.instrument.control_flow import Key, definitions, key_of
from consan.instrument.isa import makes_generic, row_of
from consan.instrument.ptx import Instruction, Operand, Register, Symbol, TensorAddress
from consan.instrument.rewriting.context import FunctionPlan, Work, operand_of
from consan.instrument.rewriting.emit import Snippet, Unsupported, wide_address, word

_DIMENSIONS = 5
_OTHER_MODES = frozenset({"tile::gather4", "tile::scatter4", "im2col", "im2col_no_offs", "im2col::w", "im2col::w::128"})


def is_tile(work: Work) -> bool:
    """Whether a copy moves a box that its coordinates alone determine."""
    return operand_of(work, "tensor") is not None and _OTHER_MODES.isdisjoint(work.words)


def map_address(work: Work, tensor: Operand | None, snippet: Snippet) -> str:
    """The address of the map. A map that is a kernel parameter also has a generic address."""
    if not isinstance(tensor, TensorAddress):
        raise Unsupported("tensor operand")
    return wide_address(snippet, tensor.base, work.instruction.scope)


def has_map(plan: FunctionPlan) -> bool:
    """Whether a function has a tensor copy whose map may be in global memory."""
    copies = [work for work in plan.work if work.row.is_tensor_copy]
    made = definitions(plan.function) if copies else {}
    return any(not in_parameter(work, made) for work in copies)


def in_parameter(work: Work, made: dict[Key, list[Instruction]]) -> bool:
    """Whether the map is certainly a kernel parameter, which nothing can change: its address comes from `cvta.param` alone."""
    tensor = operand_of(work, "tensor")
    if not isinstance(tensor, TensorAddress) or not isinstance(tensor.base, (Register, Symbol)):
        return False
    pending, seen = [key_of(work.instruction.scope, tensor.base.name)], set[Key]()
    while pending:
        key = pending.pop()
        if key in seen:
            continue
        seen.add(key)
        for instruction in made.get(key, ()):
            source = instruction.operands[-1]
            if row_of(instruction).moves and isinstance(source, (Register, Symbol)):
                pending.append(key_of(instruction.scope, source.name))
            elif not gives_parameter(instruction):
                return False
        if key not in made:
            return False
    return True


def gives_parameter(instruction: Instruction) -> bool:
    """Whether the result is the generic address of a kernel parameter."""
    return makes_generic(instruction, "param")


def map_and_place(work: Work, snippet: Snippet) -> dict[str, Value]:
    """The map and the coordinates of a tile, padded to five coordinates."""
    tensor = operand_of(work, "tensor")
    address = map_address(work, tensor, snippet)
    assert isinstance(tensor, TensorAddress)
    place = [word(coordinate, snippet, work.instruction.scope) for coordinate in tensor.coords]
    values: dict[str, Value] = {f"x{dimension}": "0" for dimension in range(_DIMENSIONS)}
    return {"map": address} | values | {f"x{dimension}": coordinate for dimension, coordinate in enumerate(place)}
