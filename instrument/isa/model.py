"""One row of the opcode table, and its statements about one instruction.

A `Row` describes one instruction form of the PTX ISA: its grammar, the role of each operand, the memory it touches and through which
proxy, what it orders, and how its completion is observed. `Row.accesses` applies that to an instruction and gives one `MemoryAccess` for
each piece of memory that the executing thread names. Chapter 8 of the manual ("Memory Consistency Model") defines `sem`, `scope` and
`is_strong`; 9.7.9.8 "ld" and 9.7.13.5 "atom" define the defaults.

Not handled here: the target of a generic address (known at run time), sizes held in registers (`total_bytes` is then 0), and the threads
that an operation synchronises with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import cached_property
from itertools import product
from typing import Any, Final, NamedTuple, Protocol

from consan.dataclass import dataclass
from consan.instrument.effects import CtaBarrier
from consan.instrument.effects.makes import Makes
from consan.instrument.effects.model import Effect
from consan.instrument.isa.classes import COMMON, TYPE_BYTES
from consan.instrument.isa.grammar import ModifierSlot, expand_form, match_free, match_ordered
from consan.instrument.isa.roles import Operand, OperandSpec, align_roles, immediate_value, parse_notation, present_of
from consan.instrument.isa.traits import AccessTraits, OrderTraits, Traits

__all__ = ["NO_ACCESS", "STATUSES", "InstructionEvent", "InstructionLike", "MemoryAccess", "Row", "Spelled", "Touch"]

STATUSES = ("checked", "recorded", "in part", "neutral", "not modelled")
"""recorded: the recording engine may take it; called hooks do not check it. in part: the same, but a part of its effect is not modelled,
so a kernel with it is `incomplete`."""


class Spelled(Protocol):
    """Something with an opcode."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The opcode split at its dots."""
        ...


class InstructionLike(Spelled, Protocol):
    """The parts of an instruction that the table needs: its opcode and its operands."""

    @property
    def operands(self) -> tuple[Any, ...]:
        """The operands in order."""
        ...


@dataclass(frozen=True)
class Touch:
    """One piece of memory that a form touches: access, role of the address operand, space, and width.

    `space` is a space or the name of the modifier class that gives it. `width` is "type" (element type times vector size), a role
    (the operand with that role is the byte count), or a number of bytes.
    """

    access: str
    role: str
    space: str
    width: str = "type"
    proxy: str = "generic"


@dataclass(frozen=True)
class MemoryAccess(AccessTraits, OrderTraits):
    """One memory access or synchronisation, as the text of an instruction gives it."""

    space: str
    access: str
    width_bytes: int
    count: int
    total_bytes: int
    sem: str
    scope: str
    is_strong: bool
    proxy: str
    address: Operand | None
    qualified_space: str = "none"
    size: Operand | None = None

    @property
    def is_asynchronous(self) -> bool:
        """Whether a copy makes it, through the async proxy."""
        return self.proxy == "async"


@dataclass(frozen=True)
class InstructionEvent(OrderTraits):
    """The effects of one instruction that a log of an execution must hold.

    `operands`: each with its role. `accesses`: every piece of memory, with its address operand, size, space, proxy and kind. `orders`:
    "acquire", "release", "sc", "proxy", at `scope`; empty for an instruction that orders nothing.
    """

    row: Row
    operands: tuple[tuple[str, Operand], ...]
    accesses: tuple[MemoryAccess, ...]
    sem: str
    scope: str

    @property
    def orders(self) -> tuple[str, ...]:
        """The orders that it makes: "acquire", "release", "sc", ..."""
        return (*_ORDERS.get(self.sem, ()), *(("proxy",) if "proxy" in self.row.ordering else ()))

    @property
    def suspends(self) -> bool:
        """Whether the thread may wait here for others."""
        return self.row.suspends

    @property
    def completion(self) -> str:
        """How the end of its asynchronous part is observed; "sync" without one."""
        return self.row.completion

    @property
    def roles(self) -> tuple[str, ...]:
        """The role of each operand."""
        return tuple(role for role, _ in self.operands)

    @property
    def first(self) -> MemoryAccess:
        """The first access. For an instruction that touches no memory: only its semantics and scope."""
        if self.accesses:
            return self.accesses[0]
        return MemoryAccess("none", "none", 0, 0, 0, self.sem, self.scope, self.sem != "weak", "none", None)

    def operand(self, role: str) -> Operand | None:
        """The operand with a role; None if the instruction lacks it."""
        return next((operand for name, operand in self.operands if name == role), None)


_ORDERS = {"acquire": ("acquire",), "release": ("release",), "acq_rel": ("acquire", "release"), "sc": ("acquire", "release", "sc")}
NO_ACCESS = MemoryAccess("none", "none", 0, 0, 0, "weak", "none", False, "none", None)


class Semantics(NamedTuple):
    """How an instruction orders memory: its semantics (ISA ".sem"), and at which scope."""

    sem: str
    scope: str


WEAK: Final = Semantics("weak", "none")


@dataclass(frozen=True, eq=False)
class Row(Traits):
    """One instruction form.

    `name` is the part of the opcode with a fixed order, `form` the whole grammar, `notation` the operands by role. `ordering` lists the
    semantics that the form can have, `completion` says how the end of its asynchronous part is observed. `default`: its semantics and scope
    where no modifier says them. `action` tells the members of a family apart: the last word of the name, where the table gives no other.
    `flow` says where control goes: "branch", "table" (an indexed branch), "call", "return", "exit", "trap", "break" (brkpt), or empty.
    `makes`: its effects, in the order in which they happen, but for accesses in the generic proxy, which follow from `touches`.
    `aligned`: the whole warp must execute it together, though its opcode has no such modifier. Rows are compared by identity: the table
    contains each of them once.
    """

    name: str
    form: str
    notation: str
    section: str
    family: str
    status: str = "neutral"
    touches: tuple[Touch, ...] = ()
    ordering: tuple[str, ...] = ()
    completion: str = "sync"
    default: Semantics = WEAK
    action: str = ""
    flow: str = ""
    aligned: bool = False
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    makes: tuple[Makes, ...] = ()

    @cached_property
    def slots(self) -> list[tuple[ModifierSlot, ...]]:
        """Modifiers after the name; one tuple for each choice of the groups of several words."""
        return expand_form(self.form, self.name, {**COMMON, **self.classes})

    @cached_property
    def _usual_roles(self) -> dict[tuple[str, ...], tuple[str, ...]]:
        return {}

    @cached_property
    def _modifiers(self) -> dict[tuple[str, ...], dict[str, str]]:
        return {}

    @cached_property
    def specs(self) -> tuple[OperandSpec, ...]:
        """The operands, optional ones included."""
        return parse_notation(self.notation)

    @cached_property
    def _open(self) -> tuple[str, ...]:
        """Modifiers that are not the same in every opcode of this form, in its order."""
        everything = self.slots[-1]  # the last choice has every group
        return tuple(slot.name for slot in everything if not all(_is_fixed(slot.name, slots) for slots in self.slots))

    @property
    def access(self) -> str:
        """none, read, write or rmw: the strongest access of its touches to data."""
        kinds = {touch.access for touch in self.touches}
        return next((kind for kind in ("rmw", "write", "read") if kind in kinds), "none")

    @property
    def writes(self) -> bool:
        """Whether it changes data in memory."""
        return self.access in ("write", "rmw")

    @property
    def space(self) -> str:
        """The space of its first touch: the name of a space, or the modifier class that gives it."""
        return self.touches[0].space if self.touches else "none"

    @property
    def proxy(self) -> str:
        """The proxy of its first touch."""
        return self.touches[0].proxy if self.touches else "none"

    @property
    def collective(self) -> bool:
        """Whether the lanes that a member mask names execute it together."""
        return self.family == "warp-collective" and "mask" in self.operands

    def is_aligned(self, parts: tuple[str, ...]) -> bool:
        """Whether the whole warp must execute it together (ISA ".aligned")."""
        return self.aligned or "aligned" in self.modifiers(parts)

    @property
    def operands(self) -> tuple[str, ...]:
        """Roles of all operands, optional ones included."""
        return tuple(spec.role for spec in self.specs)

    def match(self, parts: tuple[str, ...], *, free: bool = False) -> dict[str, str] | None:
        """The modifiers of `parts` by class, if the opcode has this form. `free`: also match the orders that only ptxas accepts."""
        words = self.name.split(".")
        if list(parts[: len(words)]) != words:
            return None
        matcher = match_free if free else match_ordered
        found = (matcher(slots, parts[len(words) :]) for slots in self.slots)
        return next((modifiers for modifiers in found if modifiers is not None), None)

    def opcodes(self) -> Iterator[tuple[str, ...]]:
        """Every opcode of this form, in the manual's order of modifiers."""
        name = tuple(self.name.split("."))
        for slots in self.slots:
            for words in product(*(("", *sorted(slot.words)) if slot.optional else sorted(slot.words) for slot in slots)):
                yield (*name, *filter(None, words))

    def modifiers(self, parts: tuple[str, ...]) -> dict[str, str]:
        """The modifiers of an opcode for which `lookup` returned this row, in the manual's order."""
        found = self._modifiers.get(parts)
        if found is None:
            found = self.match(parts)
            if found is None:
                found = self.match(parts, free=True)
            if found is None:
                raise ValueError(f"{'.'.join(parts)} is not of the form {self.form}")
            self._modifiers[parts] = found
        return found

    def choices(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        """The opcode's choice for each modifier that the form leaves open, in the form's order; empty for one that is absent."""
        modifiers = self.modifiers(parts)
        return tuple(modifiers.get(name, "") for name in self._open)

    def canonical(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        """The opcode with its modifiers in the manual's order."""
        return (*self.name.split("."), *self.modifiers(parts).values())

    def flags(self, parts: tuple[str, ...]) -> dict[str, bool]:
        """The flags that an opcode sets in the effects that it makes."""
        return {name: words <= set(parts) for made in self.makes for name, words in made.words.items()}

    def roles(self, instruction: InstructionLike) -> tuple[str, ...]:
        """The role of each operand of the instruction."""
        parts, operands = instruction.parts, instruction.operands
        usual = self._usual_roles.get(parts)
        if usual is None:
            usual = self._usual_roles[parts] = tuple(spec.role for spec in present_of(self.specs, self.modifiers(parts)))
        return usual if len(usual) == len(operands) else align_roles(self.specs, operands, self.modifiers(parts))

    def fits(self, instruction: InstructionLike) -> bool:
        """Whether the instruction has the operands of the form."""
        try:
            self.roles(instruction)
        except ValueError:
            return False
        return True

    def accesses(self, instruction: InstructionLike) -> tuple[MemoryAccess, ...]:
        """One access for each piece of memory that the instruction touches; barriers and fences give none."""
        modifiers = self.modifiers(instruction.parts)
        roles = self.roles(instruction)
        return tuple(self._access(touch, modifiers, roles, instruction.operands) for touch in self.touches)

    def event(self, instruction: InstructionLike) -> InstructionEvent:
        """The effects of the instruction that other threads and asynchronous operations can notice."""
        roles = self.roles(instruction)
        sem, scope = self.semantics(self.modifiers(instruction.parts))
        return InstructionEvent(self, tuple(zip(roles, instruction.operands, strict=True)), self.accesses(instruction), sem, scope)

    def does(self, *kinds: type[Effect]) -> bool:
        """Whether it makes an effect of one of some kinds."""
        return any(issubclass(made.kind, kinds) for made in self.makes)

    @property
    def is_described(self) -> bool:
        """Whether its effects are those that it makes, and accesses of the thread itself."""
        return bool(self.makes) or all(touch.proxy != "async" for touch in self.touches)

    @property
    def awaited(self) -> bool:
        """Whether the executing thread waits for all threads of a barrier of the CTA."""
        return any(made.kind is CtaBarrier and "waits" in made.numbers for made in self.makes)

    def attributes(self, made: Makes, instruction: InstructionLike) -> dict[str, Any]:
        """The leaves and flags of an effect that the text of an instruction gives, beside operands."""
        operands = dict(zip(self.roles(instruction), instruction.operands, strict=True))
        return made.attributes(instruction.parts, self.modifiers(instruction.parts), operands)

    def names_space(self, parts: tuple[str, ...]) -> bool:
        """Whether an opcode names the state space of its addresses, or the form does; else they are generic."""
        return "ss" not in self.classes or "ss" in self.modifiers(parts)

    def address_lanes(self, parts: tuple[str, ...]) -> int:
        """The number of threads of the warp, from lane 0 on, that give an address: fewer than 32 for ldmatrix and stmatrix only."""
        modifiers = self.modifiers(parts)
        if self.family not in ("ldmatrix", "stmatrix"):
            return 32
        rows = 16 if "m16n16" in (modifiers.get("shape"), modifiers.get("m16n16")) else 8
        return min(32, rows * int(modifiers["num"][1:]))

    def describe(self, instruction: InstructionLike) -> MemoryAccess:
        """The first access. For a form that touches no memory: only its semantics and scope."""
        return self.event(instruction).first

    def semantics(self, modifiers: Mapping[str, str]) -> Semantics:
        """Memory semantics and scope: the opcode's own, or this form's defaults."""
        if "weak" in modifiers:
            return WEAK
        scope = modifiers.get("scope", self.default.scope)
        written = next((word for word in _SEM_WORDS if word in modifiers), self.default.sem)
        return Semantics(modifiers.get("sem", written), _SCOPE_WORDS.get(scope, scope))

    def _access(self, touch: Touch, modifiers: Mapping[str, str], roles: tuple[str, ...], operands: tuple[Any, ...]) -> MemoryAccess:
        qualified = _space(touch.space, modifiers)
        index = roles.index(touch.role) if touch.role in roles else None
        size = operands[roles.index(touch.width)] if touch.width in roles else None
        width, count = _width(touch.width, modifiers) if size is None else (immediate_value(size), 1)
        sem, scope = self.semantics(modifiers)
        return MemoryAccess(
            space=qualified.partition("::")[0],
            access=touch.access,
            width_bytes=width,
            count=count,
            total_bytes=width * count,
            sem=sem,
            scope=scope,
            is_strong=sem != "weak",
            proxy=touch.proxy,
            address=None if index is None else operands[index],
            qualified_space=qualified,
            size=size,
        )


# Semantics that a form spells out itself instead of using a class. .mmio is combined with .relaxed.
_SEM_WORDS = ("mmio", "volatile", "acquire", "release", "relaxed")
# membar's levels are older names of scopes ("membar, fence").
_SCOPE_WORDS = {"gl": "gpu"}


def _is_fixed(name: str, slots: tuple[ModifierSlot, ...]) -> bool:
    """Whether every opcode with these slots has the modifier, as the form spells it."""
    return any(slot.name == name and not slot.optional and slot.words == {name.partition("#")[0]} for slot in slots)


def _space(rule: str, modifiers: Mapping[str, str]) -> str:
    # If the space is a modifier class and the modifier is missing, the address is generic ("Generic Addressing").
    rule = {"cta_group::2": "shared::cluster"}.get(modifiers.get("cta_group", ""), "dst") if rule == "dst-or-peer" else rule
    return modifiers.get(rule, "generic" if rule == "ss" else rule)


def _width(rule: str, modifiers: Mapping[str, str]) -> tuple[int, int]:
    """Bytes of an element, and number of elements; 0 bytes if the text does not say."""
    if rule.isdigit():
        return int(rule), 1
    if rule != "type":
        return 0, 1
    return TYPE_BYTES[modifiers["type"]], int(modifiers.get("vec", "v1")[1:])
