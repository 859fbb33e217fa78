"""The recording of accesses to shared memory by the thread itself, and of barriers (ISA "ld", "st", "atom", "ldmatrix", "barrier")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from consan.instrument.isa import MemoryAccess, Row, family_of, has_action
from consan.instrument.passes.accesses import bytes_of, pieces
from consan.instrument.passes.context import Work, operand_of
from consan.instrument.passes.emit import Snippet, Unsupported, narrow_guard, word
from consan.instrument.passes.flow import key_of
from consan.instrument.ptx import Immediate, Instruction, Operand, Register, Vector
from consan.instrument.record import clusters
from consan.instrument.record.stored_rows import row_fold
from consan.instrument.record.templates import Event, Flag, TemplateEvent
from consan.instrument.record.words import Words

if TYPE_CHECKING:
    from consan.instrument.record.rewrite import KernelRewrite

FAMILIES = frozenset({"load", "store", "atomic", "reduction", "ldmatrix", "stmatrix"})
BARRIERS = frozenset({"barrier", "warp-barrier"})
_ALL_THREADS = -1


def add(kernel: KernelRewrite, work: Work) -> None:
    """A load, a store, an atomic, or a matrix of `ldmatrix` or `stmatrix`."""
    instruction = work.instruction
    access = next(each for each in work.row.accesses(instruction) if each.space in ("shared", "generic"))
    nbytes = bytes_of(work, access)
    if access.address is None or nbytes not in (1, 2, 4, 8, 16):
        raise Unsupported(f"{instruction.opcode}: access of {nbytes} bytes")
    block = kernel.open_block()
    fields, code = block.address(instruction, access.address, access.space)
    kernel.pending += code
    fields["value_word"] = _stored_value(kernel, block, work, access, nbytes)
    kind = {"read": Event.READ, "write": Event.WRITE}.get(access.access, Event.ATOMIC)
    for piece in pieces(kernel.plan, work, access, nbytes):
        site = kernel.context.site(kernel.plan, work, access.access, access.space, piece.size, unused=piece.unused)
        flags = Flag.STRONG * access.is_strong | Flag.UNUSED * piece.unused | clusters.flags_of(work, access)
        flags |= Flag.CONSTANT * _is_constant(kernel, work)
        lanes = work.row.address_lanes(instruction.parts)
        offset = fields.get("offset", 0) + piece.offset
        of_piece: dict[str, Any] = fields | {"offset": offset, "a": element_bytes(work.row, instruction, access) or nbytes, "b": lanes}
        block.add(TemplateEvent(kind, int(flags), site.number, piece.size, **of_piece))
    kernel.plan.stats.memory_sites += 1


def element_bytes(row: Row, instruction: Instruction, access: MemoryAccess) -> int:
    """The bytes of each scalar operation: a packed type is as many (ISA "Packed Data Types")."""
    return access.width_bytes // (2 if row.modifiers(instruction.parts).get("type", "").endswith("x2") else 1)


def _stored_value(kernel: KernelRewrite, block: Words, work: Work, access: Any, nbytes: int) -> int:
    """The word of a stored value; none where the text does not give it to the lane."""
    if access.access != "write" or access.is_strong:
        return -1
    if work.row.family == "stmatrix":
        if kernel.is_tight:
            return -1
        snippet = Snippet()
        own = snippet.register("b32")
        snippet.add(f"cvt.u32.u64 {own}, %__consan_c;")
        word, code = block.folded([row_fold(work, own, snippet)], snippet)
        kernel.pending += code
        return word
    if access.width_bytes == 16:
        return -1
    source: Operand | None = operand_of(work, "src")
    elements = list(source.elements) if isinstance(source, Vector) else [source]
    word, code = block.value(elements, access.width_bytes, work.instruction.scope)  # type: ignore[arg-type]
    kernel.pending += code
    return word


def _is_constant(kernel: KernelRewrite, work: Work) -> bool:
    """Whether the text gives the value that a store stores: immediates, and registers that only one immediate is moved to."""
    source = operand_of(work, "src") if work.row.family == "store" else None
    elements = source.elements if isinstance(source, Vector) else (source,)
    return all(isinstance(each, Immediate) or _is_immediate(kernel, work, each) for each in elements)


def _is_immediate(kernel: KernelRewrite, work: Work, source: Operand | None) -> bool:
    if not isinstance(source, Register):
        return False
    made = kernel.definitions.get(key_of(work.instruction.scope, source.name), [])
    return len(made) == 1 and has_action(made[0], "arithmetic", "move") and isinstance(made[0].operands[-1], Immediate)


def add_barrier(kernel: KernelRewrite, work: Work) -> None:
    """A barrier of the CTA or of a warp."""
    instruction, block = work.instruction, kernel.open_block()
    guard = kernel.guard(block, instruction)
    site = kernel.context.site(kernel.plan, work, "none", "none", 0).number
    warp = work.row.family == "warp-barrier"
    a, a_word = kernel.number_of(block, instruction, instruction.operands[0] if warp else operand_of(work, "barrier"))
    b, b_word = (_ALL_THREADS, -1) if warp or not (count := operand_of(work, "count")) else kernel.number_of(block, instruction, count)
    flags = 0 if has_action(instruction, work.row.family, "arrive") else Flag.WAITS
    flags |= Flag.SEAL if instruction.start in kernel.seals else Flag(0)
    kind = Event.WARP_BARRIER if warp else Event.BARRIER
    block.add(TemplateEvent(kind, flags, site, guard_word=guard, a=a, a_word=a_word, b=b, b_word=b_word))
    kernel.plan.stats.sync_sites += 1


def only_members(instruction: Instruction) -> str | None:
    """A bar.warp.sync that only lanes of its mask execute, in place of one with a mask in a register; None where that is no other text.

    Of a lane that its mask lacks the behaviour is undefined (ISA "bar.warp.sync"): a chip may end the launch there, and with it the log.
    """
    if family_of(instruction) != "warp-barrier" or isinstance(mask := instruction.operands[0], Immediate):
        return None
    snippet = Snippet()
    lane, member = snippet.register("b32"), snippet.register("pred")
    value = word(mask, snippet, instruction.scope)
    snippet.add(f"mov.u32 {lane}, %lanemask_eq; and.b32 {lane}, {lane}, {value};")
    snippet.add(f"setp.ne.u32 {member}, {lane}, 0;")
    snippet.add(f"{narrow_guard(snippet, instruction, member)}{instruction.opcode} {value};")
    return snippet.text()


HANDLERS = dict.fromkeys(FAMILIES, add) | dict.fromkeys(BARRIERS, add_barrier)
