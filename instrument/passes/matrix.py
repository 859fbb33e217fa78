"""Matrix products of a warpgroup (ISA "wgmma.mma_async"): their operands in shared memory, their groups.

A descriptor is a 64-bit register whose value is known at run time only. Rows, depth and major come from the opcode and its
immediates. registers.py handles the registers of a product.

Hooks do not follow sparse forms; the recorder does. Of a sparse product A is stored without the half of its elements that is zero.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from consan.instrument.abi.hooks import Value, hook
from consan.instrument.passes.context import Context, FunctionPlan, Work
from consan.instrument.passes.emit import Snippet, Unsupported, guard_text, word
from consan.instrument.ptx import Immediate, Operand, Vector

_SHAPE = re.compile(r"m64n(\d+)k(\d+)$")
_ROWS_OF_A = 64
_VALUES = 2  # operands of a dense product that are registers, but for the accumulators and descriptors
_K_CHUNKS = 2  # an instruction is always 32 bytes deep, and B of a sparse one twice as much


def run(context: Context) -> None:
    """Insert hooks at every matrix product, commit and wait."""
    handlers = {"wgmma.mma_async": _product, "wgmma.commit_group": _commit, "wgmma.wait_group": _wait, "wgmma.fence": _fence}
    context.instrument(lambda work: handlers.get(work.row.name, _unknown) if work.row.is_of_products else None)


def _unknown(context: Context, plan: FunctionPlan, work: Work) -> None:
    raise Unsupported(work.row.name)


def _product(context: Context, plan: FunctionPlan, work: Work) -> None:
    instruction, snippet = work.instruction, Snippet()
    site = context.site(plan, work, "read", "shared", 0)
    for operand in operands_in_memory(work):
        values: dict[str, Value] = {
            "descriptor": operand.descriptor.text, "site": site.number, "rows": operand.rows, "depth": operand.depth,
            "form": operand.major | operand.own_rows << 1,
        }  # fmt: skip
        context.call(snippet, hook("matrix_operand", **values), guard=guard_text(instruction))
    plan.stats.memory_sites += 1
    context.edits.insert_before(instruction, snippet.text())


@dataclass(frozen=True)
class OperandInMemory:
    """A matrix in shared memory. `depth`: chunks along K, or elements if `major` is 1 (transposed)."""

    descriptor: Operand
    rows: int
    depth: int
    major: int
    own_rows: bool  # each warp of the warpgroup reads a quarter of the rows


def operands_in_memory(work: Work) -> Iterator[OperandInMemory]:
    """B, and A if it is in memory."""
    instruction = work.instruction
    shape = next((m for word in work.words if (m := _SHAPE.match(word))), None)
    operands = instruction.operands
    if shape is None or len(operands) < 3:
        raise Unsupported(instruction.opcode)
    columns, depth = int(shape[1]), int(shape[2])
    values = [place for place, role in enumerate(work.event.roles) if role == "src"]  # A, the metadata of a sparse product, scale-d
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


def _commit(context: Context, plan: FunctionPlan, work: Work) -> None:
    context.after(work, Snippet(), hook("matrix_commit"))
    plan.stats.sync_sites += 1


def _wait(context: Context, plan: FunctionPlan, work: Work) -> None:
    snippet = Snippet()
    pending = word(work.instruction.operands[0], snippet, work.instruction.scope)
    context.after(work, snippet, hook("matrix_wait", pending=pending))
    plan.stats.sync_sites += 1


def _fence(context: Context, plan: FunctionPlan, work: Work) -> None:
    """wgmma.fence orders registers only: see registers.py."""
    plan.stats.sync_sites += 1
