"""The recording of mbarriers (ISA "mbarrier").

The log holds a wait only if it has returned true: failed polls leave no trace. So the block of a wait comes after the instruction, and a
branch skips it if the result is false.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from consan.instrument.effects import WordValue
from consan.instrument.effects.kinds import MbarrierWait
from consan.instrument.passes.context import Work, is_mbarrier_wait, operand_of
from consan.instrument.passes.emit import Snippet, Unsupported, predicate_of
from consan.instrument.ptx import Instruction, Operand
from consan.instrument.record import lowering
from consan.instrument.record.clusters import is_relaxed
from consan.instrument.record.lowering import at
from consan.instrument.record.orders import reach_of

if TYPE_CHECKING:
    from consan.instrument.record.rewrite import KernelRewrite

FAMILIES = frozenset({"mbarrier"})


def is_wait(work: Work | None) -> bool:
    """Whether an instruction waits at an mbarrier."""
    return work is not None and is_mbarrier_wait(work)


def add(kernel: KernelRewrite, work: Work) -> None:
    """Record an operation other than a wait, which is recorded behind its instruction."""
    if not is_wait(work):
        lowering.add(kernel, work)


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
    parity, unused = _parity(kernel, work, instruction), instruction.start in kernel.plan.ignored_waits
    side = next(each for each in work.event.accesses if each.address is operand_of(work, "mbar"))
    flags = {"relaxed": unused or is_relaxed(work), "unused": unused}
    kernel.record(work, MbarrierWait, ("none", "shared", 8), parity=parity, at=at(side), **flags, **reach_of(work, side))
    kernel.pending += kernel.closed(node) + (leaving.behind_wait(instruction, name) if leaving is not None else "") + f"{label}:\n"


def _parity(kernel: KernelRewrite, work: Work, instruction: Instruction) -> WordValue:
    """The parity of a wait; that of a state operand is its highest bit (passes/mbarriers.py)."""
    parity, block = operand_of(work, "parity"), kernel.open_block()
    if parity is not None:
        return kernel.number_of(instruction, parity)
    state: Operand | None = operand_of(work, "state")
    assert state is not None
    snippet = Snippet()
    low, high = snippet.register("b32"), snippet.register("b32")
    snippet.add(f"mov.b64 {{{low}, {high}}}, {state.text};")
    snippet.add(f"shr.u32 {high}, {high}, 31;")
    word, code = block.hashed(high, snippet)
    kernel.pending += code
    return WordValue(0, word)


HANDLERS = dict.fromkeys(FAMILIES, add)
