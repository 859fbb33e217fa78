"""The instructions of a module as events, where no log tells them: one template for each stretch of its text.

Enough for edits (edits.py): kinds, operands that the text tells, and places. Nothing can be replayed with them. A register that is
written once, with a number, is that number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from consan.checker.changes import EventPlaces
from consan.checker.walks import Walked
from consan.instrument import effects
from consan.instrument.effects.makes import makes
from consan.instrument.effects.model import leaves
from consan.instrument.isa import Row, lookup
from consan.instrument.passes.analyse import plan_functions
from consan.instrument.passes.context import FunctionPlan, place_of
from consan.instrument.passes.flow import Key, definitions, graph_of, key_of
from consan.instrument.ptx import Function, Immediate, Instruction, Module, Operand
from consan.instrument.record.templates import Template
from consan.instrument.sites import Site

_NAMES: Final[dict[str, type[effects.Effect]]] = {  # of those whose rows do not say all of it
    "bar": effects.CtaBarrier,
    "barrier": effects.CtaBarrier,
    "cp.async": effects.CopyIssue,
    "wgmma.mma_async": effects.ProductOperand,
    "wgmma.fence": effects.ProductFence,
    "fence.proxy": effects.ProxyFence,
    "fence": effects.Fence,
    "membar": effects.Fence,
}
_ACCESSES: Final = {"read": effects.Read, "write": effects.Write, "rmw": effects.Atomic}
_BARRIER: Final = makes(effects.CtaBarrier, id="barrier", threads="count")
_UNKNOWN: Final = effects.WordValue(0, 1)  # some word: the number is in a register


@dataclass
class TextPlaces:
    """The events of a module's text, and which stretches follow each other."""

    module: Module
    sites: list[Site] = field(default_factory=list)
    templates: list[Template] = field(default_factory=list)
    walked: Walked = field(default_factory=Walked)
    places: EventPlaces = field(init=False)

    def __post_init__(self) -> None:
        for plan in plan_functions(self.module).values():
            self._add(plan)
        self.places = EventPlaces(self.templates, self.sites)

    def _add(self, plan: FunctionPlan) -> None:
        graph, first, constants = graph_of(plan.function), len(self.templates) + 1, _constants(plan.function)
        for number, node in enumerate(graph.nodes):
            self.walked.pairs |= {(first + number, first + other) for other in node.successors}
            template = Template(first + number)
            for step in node.steps:
                row = lookup(step.instruction.parts)
                if row is not None and (event := self._event(plan, step.instruction, row, constants)):
                    template.events.append(event)
            self.templates.append(template)

    def _event(self, plan: FunctionPlan, instruction: Instruction, row: Row, constants: dict[Key, int]) -> effects.Effect | None:
        made = row.makes.kind if row.makes is not None else None
        kind = made or _NAMES.get(row.name) or _ACCESSES.get(row.access)
        if kind is None and row.family not in ("warp-collective", "ldmatrix", "stmatrix", "mma", "special"):
            return None
        place, access = place_of(self.module, instruction), {"rmw": "write"}.get(row.access, row.access)
        access = access if kind in _ACCESSES.values() else "none"
        number = len(self.sites) + 1
        self.sites.append(Site(number, plan.function.name, instruction.opcode, row.family, access, "", 0, **vars(place)))
        if row.family == "bulk":
            self.walked.sizes |= {
                value
                for role, operand in zip(row.roles(instruction), instruction.operands, strict=True)
                if role == "size" and (value := _value(operand, instruction, constants)) is not None
            }
        return _described(kind or effects.PointReached, number, instruction, row, constants)


def _constants(function: Function) -> dict[Key, int]:
    """The registers that are written once, with a number."""
    writers = {key: found[0] for key, found in definitions(function).items() if len(found) == 1 and found[0].predicate is None}
    moves = {key: each.operands[-1] for key, each in writers.items() if each.parts[0] == "mov"}
    return {key: int(operand.value) for key, operand in moves.items() if isinstance(operand, Immediate) and isinstance(operand.value, int)}


def _value(operand: Operand, instruction: Instruction, constants: dict[Key, int]) -> int | None:
    if isinstance(operand, Immediate):
        return operand.value if isinstance(operand.value, int) else None
    return constants.get(key_of(instruction.scope, operand.text))


def _described(kind: type[effects.Effect], site: int, instruction: Instruction, row: Row, constants: dict[Key, int]) -> effects.Effect:
    made = _BARRIER if kind is effects.CtaBarrier else row.makes or makes(kind)
    given = dict(zip(row.roles(instruction), instruction.operands, strict=True))
    operands = ((name, given[role]) for name, role in made.operands.items() if role in given and role != "mbar")
    fields: dict[str, Any] = {name: _known(operand, instruction, constants) for name, operand in operands}
    fields |= {**made.flags(instruction.parts), **made.numbers}
    if any(leaf.name == "narrow" for leaf in leaves(kind)):
        fields["narrow"] = "cta" in instruction.parts
    if kind is effects.CtaBarrier:
        fields["waits"] = row.action != "arrive"
    return kind(site=site, **fields)


def _known(operand: Operand, instruction: Instruction, constants: dict[Key, int]) -> effects.WordValue:
    value = _value(operand, instruction, constants)
    return _UNKNOWN if value is None else effects.WordValue(value)
