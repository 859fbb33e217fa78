"""The recording of mbarriers (ISA "mbarrier").

The log holds a wait only if it has returned true: failed polls leave no trace. So the block of a wait comes after the instruction, and a
branch skips it if the result is false.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from consan.instrument.effects import WordValue
from consan.instrument.effects.kinds import MbarrierWait
from consan.instrument.effects.makes import Makes
from consan.instrument.ptx import Operand
from consan.instrument.record.families.lowering import put
from consan.instrument.rewriting.context import Work, operand_of
from consan.instrument.rewriting.emit import Snippet, Unsupported, predicate_of

if TYPE_CHECKING:
    from consan.instrument.record.recorder import FunctionRecorder


def is_wait(work: Work | None) -> bool:
    """Whether an instruction waits at an mbarrier."""
    return work is not None and work.row.does(MbarrierWait)


def add_wait(kernel: FunctionRecorder, work: Work, made: Makes) -> None:
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
    if leaving is None or kernel.variant.on_host:
        kernel.pending += f"@!{name} bra {label};\n"
    else:
        passed = f"$__consan_passed{instruction.start}"
        kernel.pending += f"@{name} bra {passed};\n{leaving.at_failed_wait(instruction, label)}{passed}:\n"
    more: dict[str, Any] = {} if operand_of(work, "parity") is not None else {"parity": _parity_of_state(kernel, work)}
    more |= {"relaxed": True, "unused": True} if instruction.start in kernel.plan.ignored_waits else {}
    put(kernel, work, made, **more)
    kernel.pending += kernel.closed(kernel.node) + (leaving.behind_wait(instruction, name) if leaving is not None else "") + f"{label}:\n"


def _parity_of_state(kernel: FunctionRecorder, work: Work) -> WordValue:
    """The parity of the phase that a state is of: its highest bit (passes/mbarriers.py)."""
    state: Operand | None = operand_of(work, "state")
    assert state is not None
    block, snippet = kernel.open_block(), Snippet()
    low, high = snippet.register("b32"), snippet.register("b32")
    snippet.add(f"mov.b64 {{{low}, {high}}}, {state.text};")
    snippet.add(f"shr.u32 {high}, {high}, 31;")
    word, code = block.hashed(high, snippet)
    kernel.pending += code
    return WordValue(0, word)
