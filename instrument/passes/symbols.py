"""The addresses that the assembler gave a kernel's shared variables, stored by the kernel itself.

A cubin does not contain them. So the first thread of a grid stores the address of each variable into words that the host reads when it has
findings to name. Addresses are the same for all CTAs and all launches of a kernel. The stores are predicated: no thread branches, and the
registers are free again at once. A kernel with one variable stores nothing, because its address is the start of shared memory.

Not handled: variables declared inside a called function, whose names are not visible in the kernel, and variables that only an indirect
call reaches: naming them would add them to the kernel's own shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from consan.instrument.abi.hooks import hook
from consan.instrument.ptx import Function, Variable
from consan.instrument.rewriting.context import Context, FunctionPlan
from consan.instrument.rewriting.emit import SELF, Snippet, control

_WORD = 2  # of the control block: the address of the module's words


def run(context: Context) -> None:
    """Insert the stores into each kernel that has a slot."""
    first = 0
    for plan in context.entries():
        symbols = _visible(context, plan)
        if plan.needs_slot and len(symbols) > 1:
            plan.stats.placed = {symbol: first + place for place, symbol in enumerate(symbols)}
            _insert(context, plan.function, _stores(context, symbols, first))
            first += len(symbols)


def _visible(context: Context, plan: FunctionPlan) -> tuple[str, ...]:
    """The variables that a kernel declares, and those of the module that the kernel or a called function names, if declared before it."""
    function = plan.function
    outside = {item.name for variable in context.module.variables if variable.start < function.start for item in variable.names}
    inside = {item.name for variable in _declared(function) for item in variable.names if plan.names[item.name] > 1}
    reached = [plan, *_called(context, plan)]
    named = [variable.symbol for each in reached for variable in each.stats.shared if variable.symbol in outside]
    return tuple(dict.fromkeys((*named, *(variable.symbol for variable in plan.stats.shared if variable.symbol in inside))))


def _called(context: Context, plan: FunctionPlan) -> Iterator[FunctionPlan]:
    """The functions that direct calls reach."""
    pending, seen = [plan], {plan.function.name}
    while pending:
        names = pending.pop().stats.calls - seen
        seen |= names
        found = [context.plans[name] for name in sorted(names) if name in context.plans]
        pending += found
        yield from found


def _declared(function: Function) -> list[Variable]:
    """The shared variables that are declared at the outermost level of a kernel's body."""
    statements = function.body.statements if function.body is not None else ()
    return [each for each in statements if isinstance(each, Variable) and each.in_shared]


def _stores(context: Context, symbols: tuple[str, ...], first: int) -> str:
    """Each word is the offset from the CTA's first byte plus one, because zero means that no thread has stored it."""
    snippet = Snippet()
    words, place = control(snippet, _WORD), snippet.register("b32")
    due = _is_first(snippet, words)
    low, bias = snippet.register("b32"), snippet.register("b32")
    context.call(snippet, hook("low"), result=low)
    snippet.add(f"sub.u32 {bias}, 1, {low};")
    for number, symbol in enumerate(symbols, first):
        snippet.add(f"mov.u32 {place}, {symbol};")
        snippet.add(f"add.u32 {place}, {place}, {bias};")
        snippet.add(f"@{due} st.volatile.global.u32 [{words}+{4 * number}], {place};")
    return snippet.text()


def _is_first(snippet: Snippet, words: str) -> str:
    """A predicate that holds for the first thread of the grid, where there are words to write."""
    due, some, each = snippet.register("pred"), snippet.register("b32"), snippet.register("b32")
    snippet.add(f"mov.b32 {some}, {SELF};")
    for dimension in "xyz":
        snippet.add(f"mov.u32 {each}, %ctaid.{dimension};")
        snippet.add(f"or.b32 {some}, {some}, {each};")
    snippet.add(f"setp.eq.u32 {due}, {some}, 0;")
    snippet.add(f"setp.ne.and.u64 {due}, {words}, 0, {due};")
    return due


def _insert(context: Context, function: Function, text: str) -> None:
    assert function.body is not None
    declared = _declared(function)
    if declared:
        context.edits.insert_after(declared[-1], "\n" + text)
    else:
        context.edits.insert_at(function.body.open + 1, "\n" + text)
