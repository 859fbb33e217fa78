"""Effects of an instruction become events of a template: its row says which it makes (instrument/isa), and each operand is stored as the
role of its leaf says (effects/model.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from consan.instrument.effects.kinds import GlobalAccess, SharedAccess, TensorCommit
from consan.instrument.effects.makes import Makes
from consan.instrument.effects.model import Effect, Role, leaves
from consan.instrument.isa import MemoryAccess, scalar_bytes
from consan.instrument.ptx import Operand
from consan.instrument.record.families import tensors
from consan.instrument.record.families.global_operands import global_address, global_guard
from consan.instrument.record.text import operand_words
from consan.instrument.record.text.orders import order_of, reach_of
from consan.instrument.rewriting.context import Work, operand_of
from consan.instrument.rewriting.emit import Unsupported

if TYPE_CHECKING:
    from consan.instrument.record.recorder import FunctionRecorder

Touch = tuple[str, str, int]  # how a site accesses which memory, and how many bytes; 0: the text does not say
Fields = Mapping[str, Any]
_NOTHING: Touch = ("none", "none", 0)
_MBARRIER: Touch = ("none", "shared", 8)
_GENERIC = "generic"


def put(kernel: FunctionRecorder, work: Work, made: Makes, **more: Any) -> None:
    """Add an effect of an instruction. `more`: fields that its row does not give, or functions that store them. Raises `Unsupported`."""
    access = _place(work, made)
    if access is None or _reaches(made.kind, access):
        kernel.open_block().add(lower(kernel, work, made, access, more))


def lower(kernel: FunctionRecorder, work: Work, made: Makes, access: MemoryAccess | None, more: Fields) -> Effect:
    """An effect. Without a place the guard is stored first. `access`: the one at its place, if it has one."""
    means = {leaf.name: leaf.means for leaf in leaves(made.kind)}
    fields: dict[str, Any] = {}
    if Role.PLACE not in (means[name] for name in made.operands):
        fields["guard"] = _guard(kernel, work, made, access)
    for name, role in made.operands.items():
        if means[name] is Role.WORDS:
            fields[name] = operand_words.stored(kernel, work, role.split())
        elif (operand := operand_of(work, role)) is not None:
            fields |= _STORED[means[name]](kernel, work, name, operand)
    implied = {name: value for name, value in _implied(work, access, "bytes" in means).items() if name in means}
    given = {name: value() if callable(value) else value for name, value in more.items()}
    fields = {**implied, **fields, **work.row.attributes(made, work.instruction), **given}
    if means.get("bytes") is int and not fields["bytes"]:
        raise Unsupported(f"{work.instruction.opcode}: access of unknown size")
    site = kernel.context.site(kernel.plan, work, *_touch(made.kind, access))
    if means.get("source") is int:  # of copies it is an address
        fields["source"] = kernel.context.source(site)
    return made.kind(**fields, site=site.number)


def _guard(kernel: FunctionRecorder, work: Work, made: Makes, access: MemoryAccess | None) -> int:
    """The word that says whether an effect happens: one of checked global memory only where the address is there."""
    if made.is_of_checked_memory and access is not None:
        return global_guard(kernel, work.instruction, access)
    return kernel.guard(kernel.open_block(), work.instruction)


def _place(work: Work, made: Makes) -> MemoryAccess | None:
    """The access that an effect is at."""
    roles = [made.operands[name] for name in ("at", "address") if name in made.operands]
    return _access_at(work, operand_of(work, roles[0])) if roles else None


def _access_at(work: Work, operand: Operand | None) -> MemoryAccess | None:
    return next((each for each in work.event.accesses if each.address is operand), None)


def _reaches(kind: type[Effect], access: MemoryAccess) -> bool:
    """Whether an access can have an effect of a kind, in its state space."""
    if issubclass(kind, SharedAccess):
        return access.may_be_shared
    return access.may_be_outside or not issubclass(kind, GlobalAccess)


def _touch(kind: type[Effect], access: MemoryAccess | None) -> Touch:
    if kind.mbarrier:
        return _MBARRIER
    if kind.access == "place" and access is not None:
        return access.access, access.space, access.total_bytes
    return (kind.access, *_NOTHING[1:])


def _implied(work: Work, access: MemoryAccess | None, has_size: bool) -> dict[str, Any]:
    """The leaves by the access at the place; without one, by the semantics. `has_size`: the effect is of that many bytes."""
    if access is not None:
        size = {"bytes": access.total_bytes, "element": scalar_bytes(work.instruction, access)} if has_size else {}
        return {**size, **reach_of(work, access)}
    event = work.event
    return {"order": order_of(event), "narrow": event.is_of_cta, "acquires": event.acquires, "releases": event.releases}


def _space(work: Work, operand: Operand) -> str:
    """The space of an address. One in no touch is in tensor memory."""
    access = _access_at(work, operand)
    if access is None:
        return "shared"
    return access.space if work.row.names_space(work.instruction.parts) else _GENERIC


def _stored_place(kernel: FunctionRecorder, work: Work, name: str, operand: Operand) -> Fields:
    widened = work.row.does(TensorCommit)  # Triton gives it a shared address with zeros above
    return kernel.locate(work.instruction, operand, _space(work, operand), widened=widened)


def _stored_number(kernel: FunctionRecorder, work: Work, name: str, operand: Operand) -> Fields:
    if _access_at(work, operand) is None:
        return {name: kernel.number_of(work.instruction, operand)}
    return {name: _stored_place(kernel, work, name, operand)["at"]}


def _stored_wide(kernel: FunctionRecorder, work: Work, name: str, operand: Operand) -> Fields:
    access = _access_at(work, operand)
    unread = [each for role in ("ignored-left", "ignored-right") if (each := operand_of(work, role)) is not None]
    return {name: global_address(kernel, work.instruction, operand, access.space if access is not None else _GENERIC, unread)}


_STORED: dict[Role | type, Callable[[FunctionRecorder, Work, str, Operand], Fields]] = {
    Role.PLACE: _stored_place,
    Role.NUMBER: _stored_number,
    Role.WIDE: _stored_wide,
    Role.MAP: tensors.stored,
}
