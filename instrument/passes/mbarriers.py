"""mbarriers (ISA "mbarrier"): hooks before operations that change a barrier, before and after waits; and proxy fences.

The shadow barrier is updated before the instruction. The hook before a wait notes the phase of the shadow. The hook after it decides, from
that phase and the requested parity, which phase a true result has observed. The state operand of a wait without `.parity` is opaque; its
highest bit is the parity of the phase of the arrival (observed on the H200, and the virtual machine does the same).

In clusters a barrier may belong to another CTA. The scope of an arrival or a wait then decides whether it makes an edge (R-M9).
"""

from __future__ import annotations

from consan.instrument.abi.flags import ArriveFlags, WaitFlags
from consan.instrument.abi.hooks import Value, hook
from consan.instrument.isa import fences_maps
from consan.instrument.passes import globals as global_sides
from consan.instrument.rewriting.context import Context, FunctionPlan, Handler, Work, operand_of
from consan.instrument.rewriting.emit import Snippet, Unsupported, guard_text, is_ranked, predicate_of, shared_operand, word
from consan.instrument.waits.waits import pure_waits


def run(context: Context) -> None:
    """Insert hooks at every mbarrier instruction and proxy fence."""
    for plan in context.plans.values():
        plan.pure_waits = pure_waits(plan.function, (work.instruction for work in plan.work if work.row.is_phase_wait))
    for plan in context.instrument(_handler):
        plan.stats.sync_sites += 1


def _handler(work: Work) -> Handler | None:
    if work.row.is_mbarrier:
        return _HANDLERS.get(work.row.name)
    return {"proxy-fence": _proxy_fence, "mbarrier-fence": _inits_fence}.get(work.row.family)


def barrier_address(context: Context, work: Work, snippet: Snippet) -> str:
    """The mbarrier operand as a 32-bit shared address."""
    access = next(a for a in work.event.accesses if a.address is operand_of(work, "mbar"))
    if access.address is None:
        raise Unsupported("no mbarrier operand")
    instruction = work.instruction
    address = shared_operand(snippet, access.address, access.space, instruction.scope, context.window)
    return context.located(snippet, address, ranked=is_ranked(access))


def _number(work: Work, role: str, snippet: Snippet, default: str) -> str:
    operand = operand_of(work, role)
    return default if operand is None else word(operand, snippet, work.instruction.scope)


def _start(context: Context, plan: FunctionPlan, work: Work) -> tuple[Snippet, dict[str, Value]]:
    """A snippet and the common arguments of these hooks."""
    snippet = Snippet()
    address = barrier_address(context, work, snippet)
    return snippet, {"address": address, "site": context.site(plan, work, "none", "shared", 8).number}


def _init(context: Context, plan: FunctionPlan, work: Work) -> None:
    snippet, place = _start(context, plan, work)
    count = _number(work, "count", snippet, "1")
    context.before(work, snippet, hook("mbarrier_init", **place, count=count))


def _inval(context: Context, plan: FunctionPlan, work: Work) -> None:
    snippet, place = _start(context, plan, work)
    context.before(work, snippet, hook("mbarrier_inval", **place))


def _is_cta_scope(work: Work) -> bool:
    """Whether the scope of an arrival or a wait is .cta, the default (ISA "mbarrier.arrive", "mbarrier.test_wait, mbarrier.try_wait")."""
    return work.event.is_of_cta


def _arrive(context: Context, plan: FunctionPlan, work: Work) -> None:
    snippet, place = _start(context, plan, work)
    said = work.flags
    flags = ArriveFlags.DROP * said["drop"] | ArriveFlags.RELAXED * said["relaxed"]
    flags |= ArriveFlags.NO_COMPLETE * said["no_complete"] | ArriveFlags.CTA * _is_cta_scope(work)
    count, nbytes = _number(work, "count", snippet, "1"), _number(work, "tx-count", snippet, "0")
    context.before(work, snippet, hook("mbarrier_arrive", **place, count=count, bytes=nbytes, flags=ArriveFlags(flags)))


def _tx(context: Context, plan: FunctionPlan, work: Work) -> None:
    snippet, place = _start(context, plan, work)
    count = _number(work, "tx-count", snippet, "0")
    if work.flags["complete"]:
        negative = snippet.register("b32")
        snippet.add(f"neg.s32 {negative}, {count};")
        count = negative
    context.before(work, snippet, hook("mbarrier_tx", **place, bytes=count))


def _copies(context: Context, plan: FunctionPlan, work: Work) -> None:
    snippet, place = _start(context, plan, work)
    context.before(work, snippet, hook("mbarrier_copies", **place, noinc=work.flags["noinc"]))


def _wait(context: Context, plan: FunctionPlan, work: Work) -> None:
    instruction, guard = work.instruction, guard_text(work.instruction)
    before, place = _start(context, plan, work)
    kept, ran = f"%__consan_s{instruction.start}", f"%__consan_w{instruction.start}"
    before.outer.append(f".reg .b64 {kept}; .reg .pred {ran};")
    before.add(f"mov.u64 {kept}, 0; setp.ne.u32 {ran}, 0, 0;")
    context.call(before, hook("mbarrier_before", **place), result=kept, guard=guard)
    before.add(f"{guard}setp.eq.u32 {ran}, 0, 0;")
    context.edits.insert_before(instruction, before.text())
    after = Snippet()
    parity, flags = after.register("b32"), after.register("b32")
    _parity(work, after, parity)
    result = operand_of(work, "dst")
    assert result is not None
    fixed = WaitFlags.RELAXED * work.flags["relaxed"]
    fixed |= WaitFlags.PURE * (instruction.start in plan.pure_waits) | WaitFlags.CTA * _is_cta_scope(work)
    after.add(f"selp.b32 {flags}, {int(fixed | WaitFlags.DONE)}, {int(fixed)}, {predicate_of(result)[0]};")
    context.call(after, hook("mbarrier_after", snapshot=kept, site=place["site"], parity=parity, flags=flags), guard=f"@{ran} ")
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
    if context.variant.cluster:
        context.before(work, Snippet(), hook("fence_inits"))


def _proxy_fence(context: Context, plan: FunctionPlan, work: Work) -> None:
    snippet = Snippet()
    if fences_maps(work.instruction):
        global_sides.add_map_fence(context, work, snippet)
    else:
        global_sides.add_fence(context, work, snippet)
    if "shared" in work.fenced:
        context.call(snippet, hook("proxy_fence", own_cta="shared::cta" in work.words), guard=guard_text(work.instruction))
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
