"""Effects of an instruction become events of a template: each operand is stored as the role of its leaf says (effects/model.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from consan.instrument.effects.model import Effect, Role, leaves
from consan.instrument.isa import MemoryAccess
from consan.instrument.passes.context import Work, operand_of
from consan.instrument.passes.emit import Unsupported
from consan.instrument.ptx import Operand
from consan.instrument.record.orders import reach_of
from consan.instrument.record.sides import global_address

if TYPE_CHECKING:
    from consan.instrument.record.rewrite import KernelRewrite

Touch = tuple[str, str, int]  # how a site accesses which memory, and how many bytes; 0: the text does not say
NOTHING: Touch = ("none", "none", 0)
_MBARRIER, _MBARRIER_BYTES = "mbar", 8


@dataclass(frozen=True)
class At:
    """An operand that is an address. `widened`: a generic one may be a shared one with zeros above (words.py)."""

    operand: Operand | None
    space: str
    widened: bool = False


def at(side: MemoryAccess, space: str = "") -> At:
    """The address of an access."""
    return At(side.address, space or side.space)


def lower(kernel: KernelRewrite, work: Work, kind: type[Effect], touch: Touch = NOTHING, **given: Any) -> Effect:
    """The effect of an instruction. Without a place the guard is stored first. Raises `Unsupported`.

    What is `given` is a number of the text, or what is stored, in this order: an operand, `At`, or a function that stores it.
    """
    roles = {leaf.name: leaf.means for leaf in leaves(kind)}
    fields: dict[str, Any] = {}
    if not isinstance(given.get("at"), At):
        fields["guard"] = kernel.guard(kernel.open_block(), work.instruction)
    for name, value in given.items():
        fields |= _lowered(kernel, work, name, roles[name], value)
    site = kernel.context.site(kernel.plan, work, *touch).number
    return kind(**(fields | {"site": site}))


def add(kernel: KernelRewrite, work: Work) -> None:
    """The effect of an instruction whose row says all of it."""
    made = work.row.makes
    if made is None:
        return
    given: dict[str, Any] = {}
    touch: Touch = NOTHING
    for name, role in made.operands.items():
        operand = operand_of(work, role)
        if role == _MBARRIER:
            side = next(each for each in work.event.accesses if each.address is operand)
            touch = ("none", "shared", _MBARRIER_BYTES)
            given |= {name: at(side), **reach_of(work, side)}
        elif operand is not None:
            given[name] = operand
    given |= {**made.flags(work.instruction.parts), **made.numbers}
    kernel.record(work, made.kind, touch, **given)


def _lowered(kernel: KernelRewrite, work: Work, name: str, role: Any, value: Any) -> dict[str, Any]:
    if isinstance(value, At):
        if value.operand is None:
            raise Unsupported(f"{work.instruction.opcode} without an address")
        located = kernel.locate(work.instruction, value.operand, value.space, widened=value.widened)
        return {**located} if role is Role.PLACE else {name: located["at"]}
    if isinstance(value, get_args(Operand)):
        if role is Role.WIDE:
            return {name: global_address(kernel, work.instruction, value, "global")}
        return {name: kernel.number_of(work.instruction, value)}
    if value is None:
        raise Unsupported(f"{work.instruction.opcode} without an operand")
    return {name: value() if callable(value) else value}
