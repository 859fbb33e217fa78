"""The recording of mbarriers (ISA "mbarrier").

The log holds a wait only if it has returned true: failed polls leave no trace. So the block of a wait comes after the instruction, and a
branch skips it if the result is false.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from consan.instrument.effects import WordValue
from consan.instrument.effects.kinds import (
    MbarrierArrive,
    MbarrierCopies,
    MbarrierEffect,
    MbarrierInit,
    MbarrierInval,
    MbarrierTransaction,
    MbarrierWait,
)
from consan.instrument.effects.model import leaves
from consan.instrument.passes.context import Work, is_mbarrier_wait, operand_of
from consan.instrument.passes.emit import Snippet, Unsupported, predicate_of
from consan.instrument.ptx import Instruction, Operand
from consan.instrument.record.clusters import is_relaxed, reach_of
from consan.instrument.record.lowering import at

if TYPE_CHECKING:
    from consan.instrument.record.rewrite import KernelRewrite

FAMILIES = frozenset({"mbarrier"})
# The kind of each operation, and the roles of the operands that its numbers are.
KINDS: Final[dict[str, tuple[type[MbarrierEffect], dict[str, str]]]] = {
    "mbarrier.init": (MbarrierInit, {"count": "count"}),
    "mbarrier.inval": (MbarrierInval, {}),
    "mbarrier.arrive": (MbarrierArrive, {"count": "count", "expected": "tx-count"}),
    "mbarrier.arrive_drop": (MbarrierArrive, {"count": "count", "expected": "tx-count"}),
    "mbarrier.expect_tx": (MbarrierTransaction, {"size": "tx-count"}),
    "mbarrier.complete_tx": (MbarrierTransaction, {"size": "tx-count"}),
    "cp.async.mbarrier.arrive": (MbarrierCopies, {}),
}
_WORDS = {"drop": "arrive_drop", "no_complete": "noComplete", "noinc": "noinc", "complete": "complete_tx"}


def is_wait(work: Work | None) -> bool:
    """Whether an instruction waits at an mbarrier."""
    return work is not None and is_mbarrier_wait(work)


def add(kernel: KernelRewrite, work: Work) -> None:
    """Record an operation other than a wait, which is recorded behind its instruction."""
    found = KINDS.get(work.row.name)
    if found is None:  # a wait, or an operation that changes nothing
        return
    kind, roles = found
    given = {name: kernel.number_of(work.instruction, each) for name, role in roles.items() if (each := operand_of(work, role))}
    words = {*work.words, work.row.action}
    flags = {leaf.name: _WORDS[leaf.name] in words for leaf in leaves(kind) if leaf.name in _WORDS}
    relaxed = {"relaxed": is_relaxed(work)} if kind is MbarrierArrive else {}
    _add(kernel, work, kind, **given, **flags, **relaxed)


def _add(kernel: KernelRewrite, work: Work, kind: type[MbarrierEffect], **given: Any) -> None:
    access = next(each for each in work.event.accesses if each.address is operand_of(work, "mbar"))
    if access.address is None:
        raise Unsupported(f"{work.instruction.opcode} without an mbarrier")
    kernel.record(work, kind, ("none", "shared", 8), at=at(access), **given, **reach_of(work, access))


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
    _add(kernel, work, MbarrierWait, parity=parity, relaxed=unused or is_relaxed(work), unused=unused)
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
