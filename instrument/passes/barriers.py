"""Barriers of the CTA and of warps (ISA "bar, barrier", "bar.warp.sync").

With whole-CTA barriers only, a barrier is one addition to the clock after the instruction. Otherwise hooks before and after it exchange
clocks. The inserted code adds no barrier and no vote to the kernel.
"""

from __future__ import annotations

import functools

from consan.instrument.abi.flags import Threads
from consan.instrument.abi.hooks import Value, hook
from consan.instrument.abi.sizes import CLUSTER_BARRIER
from consan.instrument.isa import destinations
from consan.instrument.ptx import Immediate
from consan.instrument.rewriting.context import Context, FunctionPlan, Work, operand_of
from consan.instrument.rewriting.emit import STATE, Snippet, Unsupported, guard_text, word


def run(context: Context) -> None:
    """Insert clock updates around every barrier."""
    partial = functools.partial(_barrier, _arrivals(context))
    handlers = {
        "barrier": partial if context.variant.partial else _whole_cta,
        "warp-barrier": _warp_barrier,
        "fence": _fence,
        "cluster-barrier": _cluster,
    }
    for plan in context.instrument(lambda work: handlers.get(work.row.family)):
        plan.stats.sync_sites += 1


def _check_operands(work: Work) -> None:
    """The hook after the barrier reads its guard and operands again, so the result must not have overwritten them."""
    guard = work.instruction.predicate
    read = {operand.text for operand in (operand_of(work, "barrier"), operand_of(work, "count")) if operand is not None}
    if not (read | {guard.register if guard else ""}).isdisjoint(destinations(work.instruction)):
        raise Unsupported("a barrier overwrites its own operand")


def _fence(context: Context, plan: FunctionPlan, work: Work) -> None:
    """A thread fence alone orders nothing. With a strong access before or after it, it makes a release or acquire pattern."""
    if not context.variant.flags:
        return
    context.before(work, Snippet(), hook("fence", narrow=work.event.is_of_cta))


def _whole_cta(context: Context, plan: FunctionPlan, work: Work) -> None:
    _check_operands(work)
    snippet, guard = Snippet(), guard_text(work.instruction)
    low, due = snippet.register("b32"), snippet.register("pred")
    snippet.add(f"{guard}add.u64 {STATE}, {STATE}, 0x100000001;")
    snippet.add(f"cvt.u32.u64 {low}, {STATE};")
    snippet.add(f"and.b32 {low}, {low}, {context.variant.read_period - 1};")
    snippet.add(f"setp.eq.u32 {due}, {low}, 0;")
    context.call(snippet, hook("scrub"), guard=f"@{due} ")
    context.edits.insert_after(work.instruction, "\n" + snippet.text())


def _arrivals(context: Context) -> set[str | None]:
    """Ids of the barriers that some thread only arrives at; None stands for an id that is not a constant.

    If all threads participate but some do not wait, the barrier does not align epochs, so clocks are exchanged instead.
    """
    found: set[str | None] = set()
    for plan in context.plans.values():
        for work in plan.work:
            if work.row.is_cta_barrier and work.row.arrives_only:
                operand = work.instruction.operands[0]
                found.add(str(operand.value) if isinstance(operand, Immediate) else None)
    return found


def _barrier(mixed: set[str | None], context: Context, plan: FunctionPlan, work: Work) -> None:
    _check_operands(work)
    instruction, roles = work.instruction, work.event.roles
    arrive = work.row.arrives_only
    for when, place in (("before", context.edits.insert_before), ("after", context.edits.insert_after)):
        if when == "after" and arrive:
            continue
        snippet = Snippet()
        identity = word(instruction.operands[roles.index("barrier")], snippet, instruction.scope)
        if "count" in roles:
            count = word(instruction.operands[roles.index("count")], snippet, instruction.scope)
        else:
            some = mixed and (identity in mixed or None in mixed or not identity.isdigit())
            count = hex(Threads.ALL_MIXED if some else Threads.ALL_THREADS)
        values: dict[str, Value] = {"id": identity, "count": count}
        if when == "before":
            values |= {"site": context.site(plan, work, "none", "none", 0).number, "waits": context.proves and not arrive}
        context.call(snippet, hook(f"barrier_{when}", **values), guard=guard_text(instruction))
        place(instruction, "\n" + snippet.text())


def _warp_barrier(context: Context, plan: FunctionPlan, work: Work) -> None:
    instruction, snippet = work.instruction, Snippet()
    mask = word(instruction.operands[0], snippet, instruction.scope)
    site = context.site(plan, work, "none", "none", 0)
    context.after(work, snippet, hook("warp_sync", mask=mask, site=site.number))


def _cluster(context: Context, plan: FunctionPlan, work: Work) -> None:
    """barrier.cluster: arrive is the source and wait the target of an edge (ISA "barrier.cluster")."""
    instruction, snippet, guard = work.instruction, Snippet(), guard_text(work.instruction)
    if work.row.arrives_only:
        site = context.site(plan, work, "none", "none", 0)
        context.call(snippet, hook("cluster_arrive", site=site.number, relaxed=work.flags["relaxed"]), guard=guard)
        context.edits.insert_before(instruction, "\n" + snippet.text())
        return
    if context.variant.cluster and context.proves:
        before = Snippet()
        site = context.site(plan, work, "none", "none", 0)
        context.call(before, hook("cluster_wait", site=site.number), guard=guard)
        context.edits.insert_before(instruction, "\n" + before.text())
    context.call(snippet, hook("barrier_after", id=CLUSTER_BARRIER, count=hex(Threads.ALL_MIXED)), guard=guard)
    context.edits.insert_after(instruction, "\n" + snippet.text())
