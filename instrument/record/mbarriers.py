"""The recording of mbarriers (ISA "mbarrier").

The log holds a wait only if it has returned true: failed polls leave no trace. So the block of a wait comes after the instruction, and a
branch skips it if the result is false.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from consan.instrument.passes.context import Work, is_mbarrier_wait, operand_of
from consan.instrument.passes.emit import Snippet, Unsupported, predicate_of
from consan.instrument.ptx import Instruction, Operand
from consan.instrument.record.clusters import flags_of
from consan.instrument.record.templates import Event, Flag, TemplateEvent

if TYPE_CHECKING:
    from consan.instrument.record.rewrite import KernelRewrite

FAMILIES = frozenset({"mbarrier"})
KINDS = {
    "mbarrier.init": (Event.MBARRIER_INIT, "count", None),
    "mbarrier.inval": (Event.MBARRIER_INVAL, None, None),
    "mbarrier.arrive": (Event.MBARRIER_ARRIVE, "count", "tx-count"),
    "mbarrier.arrive_drop": (Event.MBARRIER_ARRIVE, "count", "tx-count"),
    "mbarrier.expect_tx": (Event.MBARRIER_TX, "tx-count", None),
    "mbarrier.complete_tx": (Event.MBARRIER_TX, "tx-count", None),
    "cp.async.mbarrier.arrive": (Event.MBARRIER_COPIES, None, None),
}


def is_wait(work: Work | None) -> bool:
    """Whether an instruction waits at an mbarrier."""
    return work is not None and is_mbarrier_wait(work)


def add(kernel: KernelRewrite, work: Work) -> None:
    """Record an operation other than a wait."""
    found = KINDS.get(work.row.name)
    if found is None:  # an operation that changes nothing
        return
    kind, a_role, b_role = found
    a, a_word = _operand(kernel, work, a_role, 1)
    b, b_word = _operand(kernel, work, b_role, 0)
    flags = Flag.DROP * (work.row.action == "arrive_drop") | Flag.NO_COMPLETE * ("noComplete" in work.words)
    flags |= Flag.NOINC * ("noinc" in work.words) | Flag.COMPLETE * (work.row.action == "complete_tx")
    _add(kernel, work, TemplateEvent(kind, int(flags), a=a, a_word=a_word, b=b, b_word=b_word))


def _operand(kernel: KernelRewrite, work: Work, role: str | None, default: int) -> tuple[int, int]:
    operand = operand_of(work, role) if role else None
    return (default, -1) if operand is None else kernel.number_of(kernel.open_block(), work.instruction, operand)


def _add(kernel: KernelRewrite, work: Work, event: TemplateEvent) -> None:
    instruction, block = work.instruction, kernel.open_block()
    access = next(each for each in work.event.accesses if each.address is operand_of(work, "mbar"))
    if access.address is None:
        raise Unsupported(f"{instruction.opcode} without an mbarrier")
    fields, code = block.address(instruction, access.address, access.space)
    kernel.pending += code
    site = kernel.context.site(kernel.plan, work, "none", "shared", 8).number
    flags = event.flags | int(flags_of(work, access))
    block.add(TemplateEvent(**(vars(event) | fields | {"site": site, "bytes": 8, "flags": flags})))
    kernel.plan.stats.sync_sites += 1


def add_wait(kernel: KernelRewrite, work: Work, node: int) -> None:
    """Record a wait, after the instruction."""
    instruction = work.instruction
    result = operand_of(work, "dst")
    if result is None or predicate_of(result)[0] == "_":
        raise Unsupported(f"{instruction.opcode} without a result")
    name, label = predicate_of(result)[0], f"$__consan_waited{instruction.start}"
    guard = instruction.predicate
    if guard is not None:
        if guard.register == name:
            raise Unsupported(f"{instruction.opcode} that overwrites its guard")
        kernel.pending += f"@{'' if guard.negated else '!'}{guard.register} bra {label};\n"
    leaving = kernel.leaving if kernel.leaving is not None and instruction.start in kernel.leaving.waits else None
    kernel.needs_guard(instruction)
    if leaving is None or kernel.manner.on_host:
        kernel.pending += f"@!{name} bra {label};\n"
    else:
        passed = f"$__consan_passed{instruction.start}"
        kernel.pending += f"@{name} bra {passed};\n{leaving.at_failed_wait(instruction, label)}{passed}:\n"
    a, a_word = _parity(kernel, work, instruction)
    unused = Flag.RELAXED | Flag.UNUSED if instruction.start in kernel.plan.ignored_waits else 0
    _add(kernel, work, TemplateEvent(Event.MBARRIER_WAIT, a=a, a_word=a_word, flags=int(unused)))
    kernel.pending += kernel.closed(node) + (leaving.behind_wait(instruction, name) if leaving is not None else "") + f"{label}:\n"


def _parity(kernel: KernelRewrite, work: Work, instruction: Instruction) -> tuple[int, int]:
    """The parity of a wait; that of a state operand is its highest bit (passes/mbarriers.py)."""
    parity, block = operand_of(work, "parity"), kernel.open_block()
    if parity is not None:
        return kernel.number_of(block, instruction, parity)
    state: Operand | None = operand_of(work, "state")
    assert state is not None
    snippet = Snippet()
    low, high = snippet.register("b32"), snippet.register("b32")
    snippet.add(f"mov.b64 {{{low}, {high}}}, {state.text};")
    snippet.add(f"shr.u32 {high}, {high}, 31;")
    word, code = block.hashed(high, snippet)
    kernel.pending += code
    return 0, word
