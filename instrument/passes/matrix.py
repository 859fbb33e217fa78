"""Matrix products of a warpgroup (ISA "wgmma.mma_async"): their operands in shared memory, their groups.

A descriptor is a 64-bit register whose value is known at run time only. instrument/hazards handles the registers of a product.

Hooks do not follow sparse forms; the recorder does. In a sparse product A is stored without the half of its elements that is zero.
"""

from __future__ import annotations

from consan.instrument.abi.hooks import Value, hook
from consan.instrument.rewriting.context import Context, FunctionPlan, Work
from consan.instrument.rewriting.emit import Snippet, Unsupported, guard_text, word
from consan.instrument.rewriting.matrix_operands import operands_in_memory


def run(context: Context) -> None:
    """Insert hooks at every matrix product, commit and wait."""
    handlers = {"wgmma.mma_async": _product, "wgmma.commit_group": _commit, "wgmma.wait_group": _wait, "wgmma.fence": _fence}
    context.instrument(lambda work: handlers.get(work.row.name, _unknown) if work.row.is_of_products else None)


def _unknown(context: Context, plan: FunctionPlan, work: Work) -> None:
    raise Unsupported(work.row.name)


def _product(context: Context, plan: FunctionPlan, work: Work) -> None:
    instruction, snippet = work.instruction, Snippet()
    site = context.site(plan, work, "read", "shared", 0)
    for operand in operands_in_memory(instruction):
        values: dict[str, Value] = {
            "descriptor": operand.descriptor.text, "site": site.number, "rows": operand.rows, "depth": operand.depth,
            "form": operand.major | operand.own_rows << 1,
        }  # fmt: skip
        context.call(snippet, hook("matrix_operand", **values), guard=guard_text(instruction))
    plan.stats.memory_sites += 1
    context.edits.insert_before(instruction, snippet.text())


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
