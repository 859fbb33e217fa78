"""mbarriers (ISA "mbarrier"): hooks before operations that change a barrier, before and after waits; and proxy fences.

The shadow barrier is updated before the instruction. The hook before a wait notes the phase of the shadow. The hook after it decides, from
that phase and the requested parity, which phase a true result has observed. The state operand of a wait without `.parity` is opaque; its
highest bit is the parity of the phase of the arrival (observed on the H200, and the virtual machine does the same).

In clusters a barrier may belong to another CTA. The scope of an arrival or a wait then decides whether it makes an edge (R-M9).
"""

from __future__ import annotations

from collections.abc import Callable

from consan.instrument.passes import globals as global_sides
from consan.instrument.passes.context import Context, FunctionPlan, Work, caller_arguments, operand_of
from consan.instrument.passes.emit import SELF, SLOT, STATE, Snippet, Unsupported, guard_text, is_ranked, predicate_of, shared_operand, word
from consan.instrument.passes.waits import pure_waits

Handler = Callable[[Context, FunctionPlan, Work], None]

_WAITS = ("mbarrier.test_wait", "mbarrier.try_wait")
_DROP, _RELAXED, _NO_COMPLETE, _ARRIVE_CTA = 1, 2, 4, 8
_WAIT_RELAXED, _WAIT_TRY, _WAIT_PURE, _WAIT_CTA = 2, 4, 8, 16


def run(context: Context) -> None:
    """Insert hooks at every mbarrier instruction and proxy fence."""
    for plan in context.plans.values():
        plan.pure_waits = pure_waits(plan.function, (work.instruction for work in plan.work if work.row.name in _WAITS))
        for work in plan.work:
            if handler := _handler(work):
                try:
                    handler(context, plan, work)
                except Unsupported:
                    context.unmodelled(plan, work.instruction)
                else:
                    plan.stats.sync_sites += 1


def _handler(work: Work) -> Handler | None:
    if work.row.family == "mbarrier":
        return _HANDLERS.get(work.row.name)
    return {"proxy-fence": _proxy_fence, "mbarrier-fence": _inits_fence}.get(work.row.family)


def barrier_address(context: Context, work: Work, snippet: Snippet) -> str:
    """The mbarrier operand as a 32-bit shared address."""
    access = next(a for a in work.row.accesses(work.instruction) if a.address is operand_of(work, "mbar"))
    if access.address is None:
        raise Unsupported("no mbarrier operand")
    instruction = work.instruction
    address = shared_operand(snippet, access.address, access.space, instruction.scope, context.window)
    return context.located(snippet, address, ranked=is_ranked(instruction, access.space))


def _number(work: Work, role: str, snippet: Snippet, default: str) -> str:
    operand = operand_of(work, role)
    return default if operand is None else word(operand, snippet, work.instruction.scope)


def _start(context: Context, plan: FunctionPlan, work: Work) -> tuple[Snippet, list[tuple[str, str]]]:
    """A snippet and the common first arguments of these hooks."""
    snippet = Snippet()
    address = barrier_address(context, work, snippet)
    site = context.site(plan, work, "none", "shared", 8)
    return snippet, [*caller_arguments(), ("b32", address), ("b32", str(site.number))]


def _init(context: Context, plan: FunctionPlan, work: Work) -> None:
    snippet, arguments = _start(context, plan, work)
    arguments.append(("b32", _number(work, "count", snippet, "1")))
    snippet.call(context.hook("__consan_mbarrier_init"), arguments, guard=guard_text(work.instruction))
    context.edits.insert_before(work.instruction, snippet.text())


def _inval(context: Context, plan: FunctionPlan, work: Work) -> None:
    snippet, arguments = _start(context, plan, work)
    snippet.call(context.hook("__consan_mbarrier_inval"), arguments, guard=guard_text(work.instruction))
    context.edits.insert_before(work.instruction, snippet.text())


def _is_cta_scope(parts: tuple[str, ...]) -> bool:
    """Whether the scope of an arrival or a wait is .cta, the default (ISA "mbarrier.arrive", "mbarrier.test_wait, mbarrier.try_wait")."""
    return not {"cluster", "gpu", "sys"} & set(parts)


def _arrive(context: Context, plan: FunctionPlan, work: Work) -> None:
    snippet, arguments = _start(context, plan, work)
    parts = work.instruction.parts
    flags = _DROP * (parts[1] == "arrive_drop") | _RELAXED * ("relaxed" in parts) | _NO_COMPLETE * ("noComplete" in parts)
    flags |= _ARRIVE_CTA * _is_cta_scope(parts)
    count = _number(work, "count", snippet, "1")
    arguments += [("b32", count), ("b32", _number(work, "tx-count", snippet, "0")), ("b32", str(flags))]
    snippet.call(context.hook("__consan_mbarrier_arrive"), arguments, result=("b64", STATE), guard=guard_text(work.instruction))
    context.edits.insert_before(work.instruction, snippet.text())


def _tx(context: Context, plan: FunctionPlan, work: Work) -> None:
    snippet, arguments = _start(context, plan, work)
    count = _number(work, "tx-count", snippet, "0")
    if work.instruction.parts[1] == "complete_tx":
        negative = snippet.register("b32")
        snippet.add(f"neg.s32 {negative}, {count};")
        count = negative
    snippet.call(context.hook("__consan_mbarrier_tx"), [*arguments, ("b32", count)], guard=guard_text(work.instruction))
    context.edits.insert_before(work.instruction, snippet.text())


def _copies(context: Context, plan: FunctionPlan, work: Work) -> None:
    snippet, arguments = _start(context, plan, work)
    arguments.append(("b32", str(int("noinc" in work.instruction.parts))))
    snippet.call(context.hook("__consan_mbarrier_copies"), arguments, guard=guard_text(work.instruction))
    context.edits.insert_before(work.instruction, snippet.text())


def _wait(context: Context, plan: FunctionPlan, work: Work) -> None:
    instruction, guard = work.instruction, guard_text(work.instruction)
    before, arguments = _start(context, plan, work)
    kept, ran = f"%__consan_s{instruction.start}", f"%__consan_w{instruction.start}"
    before.outer.append(f".reg .b64 {kept}; .reg .pred {ran};")
    before.add(f"mov.u64 {kept}, 0; setp.ne.u32 {ran}, 0, 0;")
    before.call(context.hook("__consan_mbarrier_before"), arguments, result=("b64", kept), guard=guard)
    before.add(f"{guard}setp.eq.u32 {ran}, 0, 0;")
    context.edits.insert_before(instruction, before.text())
    after = Snippet()
    parity, flags = after.register("b32"), after.register("b32")
    _parity(work, after, parity)
    result = operand_of(work, "dst")
    assert result is not None
    fixed = _WAIT_RELAXED * ("relaxed" in instruction.parts) | _WAIT_TRY * (instruction.parts[1] == "try_wait")
    fixed |= _WAIT_PURE * (instruction.start in plan.pure_waits) | _WAIT_CTA * _is_cta_scope(instruction.parts)
    after.add(f"selp.b32 {flags}, {fixed | 1}, {fixed}, {predicate_of(result)[0]};")
    site = arguments[-1]
    after.call(
        context.hook("__consan_mbarrier_after"),
        [*caller_arguments(), ("b64", kept), site, ("b32", parity), ("b32", flags)],
        result=("b64", STATE),
        guard=f"@{ran} ",
    )
    context.edits.insert_after(instruction, "\n" + after.text())


def _parity(work: Work, snippet: Snippet, target: str) -> None:
    operand = operand_of(work, "parity")
    if operand is not None:
        snippet.add(f"and.b32 {target}, {word(operand, snippet, work.instruction.scope)}, 1;")
        return
    token, low = operand_of(work, "state"), snippet.register("b32")
    assert token is not None
    snippet.add(f"mov.b64 {{{low}, {target}}}, {token.text};")
    snippet.add(f"shr.u32 {target}, {target}, 31;")


def _nothing(context: Context, plan: FunctionPlan, work: Work) -> None:
    """The instruction changes nothing that the shadow keeps."""


def _inits_fence(context: Context, plan: FunctionPlan, work: Work) -> None:
    """fence.mbarrier_init publishes barriers to other CTAs of the cluster. Within a CTA, CTA barriers do (SEMANTICS section 9)."""
    if not context.variant.cluster:
        return
    snippet = Snippet()
    arguments = [("b64", SLOT), ("b64", STATE), ("b32", SELF)]
    snippet.call(context.hook("__consan_fence_inits"), arguments, guard=guard_text(work.instruction))
    context.edits.insert_before(work.instruction, snippet.text())


def _proxy_fence(context: Context, plan: FunctionPlan, work: Work) -> None:
    parts = work.instruction.parts
    snippet = Snippet()
    if "tensormap::generic" in parts:
        global_sides.add_map_fence(context, work, snippet)
    else:
        global_sides.add_fence(context, work, snippet)
    if not {"tensormap::generic", "alias", "global"} & set(parts):
        arguments = [("b64", SLOT), ("b64", STATE), ("b32", SELF)]
        if context.variant.cluster:
            arguments.append(("b32", str(int("shared::cta" in parts))))
        snippet.call(context.hook("__consan_proxy_fence"), arguments, result=("b64", STATE), guard=guard_text(work.instruction))
    if snippet.lines:
        context.edits.insert_before(work.instruction, snippet.text())


_HANDLERS: dict[str, Handler] = {
    "mbarrier.init": _init,
    "mbarrier.inval": _inval,
    "mbarrier.arrive": _arrive,
    "mbarrier.arrive_drop": _arrive,
    "mbarrier.expect_tx": _tx,
    "mbarrier.complete_tx": _tx,
    "mbarrier.test_wait": _wait,
    "mbarrier.try_wait": _wait,
    "mbarrier.pending_count": _nothing,
    "cp.async.mbarrier.arrive": _copies,
}
