"""Non-bulk cp.async and its groups (ISA "cp.async", "cp.async.commit_group", "cp.async.wait_group / cp.async.wait_all").

A copy is recorded at issue; its destination is always written whole. Hooks of
commits and waits come after the instruction, so a wait counts only when it has returned.
"""

from __future__ import annotations

from consan.instrument.abi.hooks import Value, hook
from consan.instrument.rewriting.context import Context, FunctionPlan, Work, operand_of
from consan.instrument.rewriting.copied_bytes import source_bytes
from consan.instrument.rewriting.emit import (
    Snippet,
    Unsupported,
    guard_text,
    shared_address,
    wide_address,
    word,
)


def run(context: Context) -> None:
    """Insert hooks at every copy, commit and wait."""
    handlers = {"cp.async": _copy, "cp.async.commit": _commit, "cp.async.wait": _wait}
    context.instrument(lambda work: handlers.get(work.row.family))


def _copy(context: Context, plan: FunctionPlan, work: Work) -> None:
    instruction, snippet = work.instruction, Snippet()
    written = next(a for a in work.event.accesses if a.writes)
    read = next(a for a in work.event.accesses if a.reads)
    if written.total_bytes not in (4, 8, 16) or written.address is None or read.address is None:
        raise Unsupported("cp.async size")
    address = context.located(snippet, shared_address(snippet, written.address, instruction.scope), ranked=False)
    source = wide_address(snippet, read.address, instruction.scope, "global")
    size = source_bytes(work, written.total_bytes, snippet)
    site = context.site(plan, work, "write", "shared", written.total_bytes)
    plan.stats.memory_sites += 1
    values: dict[str, Value] = {"address": address, "site": site.number, "source": source, "source_bytes": size}
    context.before(work, snippet, hook(f"copy{written.total_bytes}", **values))


def _commit(context: Context, plan: FunctionPlan, work: Work) -> None:
    plan.stats.sync_sites += 1
    if context.variant.asynchronous:
        context.after(work, Snippet(), hook("copy_commit"))


def _wait(context: Context, plan: FunctionPlan, work: Work) -> None:
    plan.stats.sync_sites += 1
    if not context.variant.asynchronous:
        return
    instruction, snippet = work.instruction, Snippet()
    number = operand_of(work, "group-count")
    if number is None:  # wait_all is commit_group and wait_group 0 (ISA "cp.async.wait_all")
        context.call(snippet, hook("copy_commit"), guard=guard_text(instruction))
        pending = "0"
    else:
        pending = word(number, snippet, instruction.scope)
    context.after(work, snippet, hook("copy_wait", pending=pending))
