"""The instructions of a module as events, where there is no log: one template for each stretch of its text.

Enough for edits (edits.py): kinds, operands that the text tells, and places. Nothing can be replayed with them. A register that is
written once, with a number, is that number.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, Final

from consan.checker.questions.changes import EventPlaces
from consan.checker.questions.walks import Walked
from consan.dataclass import dataclass
from consan.instrument import effects
from consan.instrument.control_flow import Key, definitions, graph_of, key_of
from consan.instrument.effects.makes import Makes, makes
from consan.instrument.effects.model import Role, leaves
from consan.instrument.functions.analyse import plan_functions
from consan.instrument.functions.points import members_of
from consan.instrument.isa import Row, lookup, row_of
from consan.instrument.ptx import Function, Immediate, Instruction, Module, Operand
from consan.instrument.record.text.templates import Template
from consan.instrument.rewriting.context import FunctionPlan, place_of
from consan.instrument.sites import Site

_ACCESSES: Final = {"read": makes(effects.Read), "write": makes(effects.Write), "rmw": makes(effects.Atomic)}
_POINT: Final = makes(effects.PointReached)
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
                if row is not None and (made := _made(step.instruction, row)):
                    template.events += self._events(plan, step.instruction, row, made, constants)
            self.templates.append(template)

    def _events(
        self, plan: FunctionPlan, instruction: Instruction, row: Row, made: tuple[Makes, ...], constants: dict[Key, int]
    ) -> list[effects.Effect]:
        place, access = place_of(self.module, instruction), {"rmw": "write"}.get(row.access, row.access)
        access = access if any(each.kind.access == "place" for each in made) else "none"
        number = len(self.sites) + 1
        self.sites.append(Site(number, plan.function.name, instruction.opcode, row.family, access, "", 0, **vars(place)))
        found = [_described(each, number, instruction, row, constants) for each in made]
        sizes = (event.size for event in found if isinstance(event, (effects.BulkLoad, effects.BulkStore, effects.BulkPush)))
        self.walked.sizes |= {size.number for size in sizes if size.is_known}
        self.walked.sizes |= {event.bytes for event in found if isinstance(event, effects.StoreAsync)}
        return found


def _constants(function: Function) -> dict[Key, int]:
    """The registers that are written once, with a number."""
    writers = {key: found[0] for key, found in definitions(function).items() if len(found) == 1 and found[0].predicate is None}
    moves = {key: each.operands[-1] for key, each in writers.items() if row_of(each).moves}
    return {key: int(operand.value) for key, operand in moves.items() if isinstance(operand, Immediate) and isinstance(operand.value, int)}


def _value(operand: Operand, instruction: Instruction, constants: dict[Key, int]) -> int | None:
    if isinstance(operand, Immediate):
        return operand.value if isinstance(operand.value, int) else None
    return constants.get(key_of(instruction.scope, operand.text))


def _made(instruction: Instruction, row: Row) -> tuple[Makes, ...]:
    """The effects of an instruction, as of a log without global memory."""
    if made := tuple(each for each in row.makes if not each.is_of_checked_memory):
        return made
    if row.access in _ACCESSES:
        return (_ACCESSES[row.access],)
    return (_POINT,) if members_of(instruction) is not None else ()


def _described(made: Makes, site: int, instruction: Instruction, row: Row, constants: dict[Key, int]) -> effects.Effect:
    means = {leaf.name: leaf.means for leaf in leaves(made.kind)}
    given = dict(zip(row.roles(instruction), instruction.operands, strict=True))
    numbers = ((name, given[role]) for name, role in made.operands.items() if role in given and means[name] is Role.NUMBER)
    fields: dict[str, Any] = {name: _known(operand, instruction, constants) for name, operand in numbers}
    fields |= {"narrow": "cta" in instruction.parts} if "narrow" in means else {}
    return made.kind(**fields | row.attributes(made, instruction), site=site)


def _known(operand: Operand, instruction: Instruction, constants: dict[Key, int]) -> effects.WordValue:
    value = _value(operand, instruction, constants)
    return _UNKNOWN if value is None else effects.WordValue(value)
