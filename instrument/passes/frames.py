"""Prologues, epilogues, calls and loops: how a thread finds its slot, keeps its clock across calls, and stops early.

A kernel takes (or joins) its CTA's slot at entry and leaves it on every `ret` and `exit`. A called function finds the slot
again and hands the clock over through the thread's record. Loop back-edges read the abort word now and then, so that
`--timeout` ends any loop. When the host stops the launch, a thread records where it stood and exits, which releases barriers.
"""

from __future__ import annotations

import itertools
from dataclasses import field

from consan.dataclass import dataclass
from consan.instrument.abi.flags import KernelFlags
from consan.instrument.abi.hooks import hook
from consan.instrument.abi.records import SLOT as SLOT_RECORD, offsets
from consan.instrument.abi.sizes import NO_ENTRY
from consan.instrument.functions.analyse import callee, external_calls
from consan.instrument.isa import may_wait, row_of
from consan.instrument.ptx import Block, Function, Instruction, Label, Node
from consan.instrument.rewriting.context import Context, FunctionPlan
from consan.instrument.rewriting.emit import COUNT, HEAD, SELF, SLOT, STATE, Snippet, control, guard_text

_POLL_MASK = 255
_SELF = """mov.u32 %__consan_x, %tid.z; mov.u32 %__consan_y, %ntid.y; mov.u32 %__consan_z, %tid.y;
mad.lo.u32 %__consan_x, %__consan_x, %__consan_y, %__consan_z; mov.u32 %__consan_y, %ntid.x; mov.u32 %__consan_z, %tid.x;
mad.lo.u32 {target}, %__consan_x, %__consan_y, %__consan_z;"""


def run(context: Context) -> None:
    """Insert what each function with a body needs."""
    numbers = itertools.count()
    entries = {plan.function.name: number for number, plan in enumerate(context.entries())}
    for name, number in entries.items():
        _prologue(context, context.plans[name], number)
    for plan in context.plans.values():
        if not plan.is_entry and plan.needs_slot:
            _function_prologue(context, plan)
        _statements(context, plan, _Loops(numbers, entries.get(plan.function.name, NO_ENTRY)))


def _at_start(context: Context, function: Function, text: str) -> None:
    assert function.body is not None
    context.edits.insert_at(function.body.open + 1, "\n" + text)


def _declare(context: Context, plan: FunctionPlan) -> str:
    lines = [f".reg .b32 {COUNT};", f"mov.u32 {COUNT}, 0;"]
    if plan.needs_slot:
        lines += [f".reg .b64 {SLOT}, {STATE};", f".reg .b32 {SELF};"]
        lines += [f".reg .{kind} {name};" for name, kind in HEAD] if context.inline else []
    return "\n".join(lines) + "\n"


def _prologue(context: Context, plan: FunctionPlan, number: int) -> None:
    snippet = Snippet()
    runtime, ids = control(snippet, 0), control(snippet, 1)
    module, counter = snippet.register("b32"), snippet.register("b32")
    snippet.add(f"mov.b64 {{{module}, {counter}}}, {ids};")
    snippet.add(f"add.u32 {counter}, {counter}, {number};")
    if plan.needs_slot:
        _compute_self(context, snippet)
        entry = KernelFlags(number) | _open(context)
        context.call(snippet, hook("enter", runtime=runtime, module=module, entry=entry, counter=counter), result=SLOT)
        _load_state(context, snippet)
        _load_head(context, snippet)
    else:
        context.call(snippet, hook("count", runtime=runtime, counter=counter))
    _at_start(context, plan.function, _declare(context, plan) + snippet.text())


def _open(context: Context) -> KernelFlags:
    """The flag of a kernel whose barriers could be signalled by instructions without hooks: its deadlocks are not proven."""
    plans = context.plans
    seen = all(not plan.stats.unmodelled and not external_calls(plan, plans) for plan in plans.values())
    return KernelFlags.NONE if seen or not context.variant.engine else KernelFlags.OPEN


def _function_prologue(context: Context, plan: FunctionPlan) -> None:
    snippet = Snippet()
    runtime = control(snippet, 0)
    _compute_self(context, snippet)
    context.call(snippet, hook("find", runtime=runtime), result=SLOT)
    _load_state(context, snippet)
    _load_head(context, snippet)
    _at_start(context, plan.function, _declare(context, plan) + snippet.text())


def _compute_self(context: Context, snippet: Snippet) -> None:
    if context.variant.cluster:
        inner = Snippet()
        context.call(inner, hook("self"), result=SELF)
        snippet.add(inner.text())
        return
    snippet.add(".reg .b32 %__consan_x, %__consan_y, %__consan_z;")
    snippet.add(_SELF.format(target=SELF))


def _load_head(context: Context, snippet: Snippet) -> None:
    """Load the slot's geometry into registers. It is constant while the CTA runs."""
    if not context.inline:
        return
    (writes, _), (reads, _), (low, _), (nbytes, _), (own, _), (base, _) = HEAD
    at, present, row = offsets(SLOT_RECORD), snippet.register("pred"), snippet.register("b32")
    snippet.add(f"setp.ne.u64 {present}, {SLOT}, 0;")
    snippet.add(f"@{present} ld.global.v2.u64 {{{writes}, {reads}}}, [{SLOT}+{at['writes']}];")
    snippet.add(f"@{present} ld.global.v2.u32 {{{low}, {nbytes}}}, [{SLOT}+{at['low']}];")
    snippet.add(f"@{present} ld.global.v2.u32 {{{own}, {base}}}, [{SLOT}+{at['row']}];")
    snippet.add(f"shr.u32 {row}, {SELF}, 5;")
    snippet.add(f"mad.lo.u32 {own}, {own}, {row}, {own};")


def _load_state(context: Context, snippet: Snippet) -> None:
    inner = Snippet()
    context.call(inner, hook("load_state"))
    snippet.add(inner.text())


def _store_state(context: Context, snippet: Snippet, guard: str) -> None:
    context.call(snippet, hook("store_state"), guard=guard)


@dataclass
class _Loops:
    """The loops of a function, as far as the walk over its text has come. `entry`: the kernel's number."""

    numbers: itertools.count[int]
    entry: int
    begins: dict[str, int] = field(default_factory=dict)  # label -> number of instructions before it
    before: list[Instruction] = field(default_factory=list)
    polled: bool = False

    def place(self, branch: Instruction) -> Instruction | None:
        """The instruction at which a thread in the loop of a backward branch most likely waits; the branch if none waits."""
        begin = self.begins.get(getattr(branch.operands[0], "name", ""))
        return None if begin is None else next(filter(may_wait, self.before[begin:]), branch)


def _statements(context: Context, plan: FunctionPlan, loops: _Loops) -> None:
    body = plan.function.body
    assert body is not None
    last: Instruction | None = None
    for statement in body.walk():
        if isinstance(statement, Label):
            loops.begins[statement.name] = len(loops.before)
            last = None  # a branch may target this label
        elif isinstance(statement, Instruction):
            last = statement
            _statement(context, plan, statement, loops)
            loops.before.append(statement)
    if loops.polled and not plan.needs_slot and not plan.is_entry:
        _at_start(context, plan.function, _declare(context, plan))
    if plan.needs_slot and not _ends(last):
        context.edits.insert_at(body.close, _departure(context, plan, "", is_exit=False))


def _ends(instruction: Instruction | None) -> bool:
    return instruction is not None and instruction.predicate is None and row_of(instruction).turns


def _statement(context: Context, plan: FunctionPlan, instruction: Instruction, loops: _Loops) -> None:
    row = row_of(instruction)
    if row.branches:
        if (place := loops.place(instruction)) is not None:
            _poll(context, plan, instruction, loops, place)
        _not_uniform(context, instruction)
    elif row.calls and plan.needs_slot:
        _around_call(context, instruction)
    elif row.leaves and plan.needs_slot:
        context.edits.insert_before(instruction, _departure(context, plan, guard_text(instruction), is_exit=row.exits))


def _not_uniform(context: Context, instruction: Instruction) -> None:
    """Remove `.uni` from a guarded branch: with hooks, lanes may wait at different times, so a branch on the result may diverge."""
    if context.variant.engine and instruction.predicate is not None and ".uni" in instruction.opcode:
        context.edits.replace(instruction, instruction.text.replace(instruction.opcode, instruction.opcode.replace(".uni", ""), 1))


def _departure(context: Context, plan: FunctionPlan, guard: str, *, is_exit: bool) -> str:
    """Insert the code before a thread's exit, or before its return to a caller that needs the clock."""
    snippet = Snippet()
    if plan.is_entry or is_exit:
        if context.copies:
            context.call(snippet, hook("copies_at_exit"), guard=guard)
        _leave(context, snippet, guard)
    elif plan.changes_state:
        _store_state(context, snippet, guard)
    return snippet.text() if snippet.lines else ""


def _leave(context: Context, snippet: Snippet, guard: str) -> None:
    context.call(snippet, hook("exit", runtime=control(snippet, 0)), guard=guard)


def _abandon(context: Context, snippet: Snippet) -> None:
    """Exit because the host stops the launch. The hook `leave` also arrives at barriers at which other warps wait for this one."""
    if not context.variant.engine:
        _leave(context, snippet, "")
        return
    context.call(snippet, hook("leave", runtime=control(snippet, 0)))


def _around_call(context: Context, instruction: Instruction) -> None:
    """Store the clock before the whole sequence that passes parameters, and load it after. Compilers put the sequence into its own scope,
    and a call inside it could overwrite the parameters or results of an indirect call (ISA "call")."""
    name = callee(instruction)
    target = context.plans.get(name) if name else None
    if name and (target is None or not target.needs_slot):
        return
    place = _call_sequence(instruction)
    snippet = Snippet()
    _store_state(context, snippet, guard_text(instruction))
    context.edits.insert_before(place, snippet.text())
    if target is not None and not target.changes_state:
        return
    after = Snippet()
    _load_state(context, after)
    context.edits.insert_after(place, "\n" + after.text())


def _call_sequence(instruction: Instruction) -> Node:
    """The scope around a call, if it contains only moves of parameters; else the call itself."""
    scope = instruction.scope
    straight = all(not isinstance(s, Block) and (not isinstance(s, Instruction) or _passes(s)) for s in scope.statements)
    alone = sum(isinstance(s, Instruction) and row_of(s).calls for s in scope.statements) == 1
    return scope if scope.parent is not None and straight and alone else instruction


def _passes(instruction: Instruction) -> bool:
    """Whether an instruction may stand among those that pass parameters."""
    row = row_of(instruction)
    return row.is_store or row.is_load or row.calls or row.moves


def _note_stand(context: Context, plan: FunctionPlan, snippet: Snippet, loops: _Loops, place: Instruction) -> None:
    """Record where the thread stood when the host stopped the launch, for the report."""
    runtime, ids = control(snippet, 0), control(snippet, 1)
    module = snippet.register("b32")
    snippet.add(f"cvt.u32.u64 {module}, {ids};")
    slot = SLOT if plan.needs_slot else "0"
    context.call(snippet, hook("stands", runtime=runtime, slot=slot, module=module, entry=loops.entry, place=place.line))


def _poll(context: Context, plan: FunctionPlan, instruction: Instruction, loops: _Loops, place: Instruction) -> None:
    """Before a backward branch: every 256th time, read whether the host stops the launch."""
    loops.polled = True
    snippet = Snippet()
    masked, due, stop = snippet.register("b32"), snippet.register("pred"), snippet.register("b32")
    skip = f"$__consan_go{next(loops.numbers)}"
    snippet.add(f"add.u32 {COUNT}, {COUNT}, 1;")
    snippet.add(f"and.b32 {masked}, {COUNT}, {_POLL_MASK};")
    snippet.add(f"setp.ne.u32 {due}, {masked}, 0;")
    snippet.add(f"@{due} bra {skip};")
    runtime = control(snippet, 0)
    context.call(snippet, hook("poll", runtime=runtime), result=stop)
    snippet.add(f"setp.eq.u32 {due}, {stop}, 0;")
    snippet.add(f"@{due} bra {skip};")
    leave = Snippet()
    _note_stand(context, plan, leave, loops, place)
    if plan.needs_slot:
        _abandon(context, leave)
    snippet.add(leave.text())
    snippet.add("exit;")
    snippet.add(f"{skip}:")
    context.edits.insert_before(instruction, snippet.text())
