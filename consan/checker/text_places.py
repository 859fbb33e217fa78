"""The instructions of a module as events, where no log tells them: one template for each stretch of its text.

Enough for edits (edits.py): kinds, operands that the text tells, and places. Nothing can be replayed with them. A register that is
written once, with a number, is that number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from consan.checker.changes import EventPlaces
from consan.checker.walks import Walked
from consan.instrument.isa import Row, lookup
from consan.instrument.passes.analyse import plan_functions
from consan.instrument.passes.context import FunctionPlan, place_of
from consan.instrument.passes.flow import Key, definitions, graph_of, key_of
from consan.instrument.ptx import Function, Immediate, Instruction, Module, Operand
from consan.instrument.record.mbarriers import KINDS
from consan.instrument.record.templates import Event, Flag, Template, TemplateEvent
from consan.instrument.sites import Site

_NAMES: Final[dict[str, Event]] = {
    **{name: kind for name, (kind, _, _) in KINDS.items()},
    "mbarrier.test_wait": Event.MBARRIER_WAIT,
    "mbarrier.try_wait": Event.MBARRIER_WAIT,
    "bar": Event.BARRIER,
    "barrier": Event.BARRIER,
    "bar.warp": Event.WARP_BARRIER,
    "barrier.cluster": Event.CLUSTER_ARRIVE,
    "cp.async": Event.COPY,
    "cp.async.commit_group": Event.COPY_COMMIT,
    "cp.async.wait_group": Event.COPY_WAIT,
    "cp.async.bulk.commit_group": Event.BULK_COMMIT,
    "cp.async.bulk.wait_group": Event.BULK_WAIT,
    "wgmma.mma_async": Event.PRODUCT,
    "wgmma.commit_group": Event.PRODUCT_COMMIT,
    "wgmma.wait_group": Event.PRODUCT_WAIT,
    "wgmma.fence": Event.PRODUCT_FENCE,
    "fence.proxy": Event.PROXY_FENCE,
    "fence.mbarrier_init": Event.INITS_FENCE,
    "fence": Event.FENCE,
    "membar": Event.FENCE,
}
_ACCESSES: Final = {"read": Event.READ, "write": Event.WRITE, "rmw": Event.ATOMIC}
_NUMBERS: Final = {
    Event.MBARRIER_INIT: ("count", ""),
    Event.MBARRIER_ARRIVE: ("count", "tx-count"),
    Event.MBARRIER_TX: ("tx-count", ""),
    Event.MBARRIER_WAIT: ("parity", ""),
    Event.BARRIER: ("barrier", "count"),
}
_GROUPS: Final = (Event.COPY_WAIT, Event.BULK_WAIT, Event.PRODUCT_WAIT)
_FLAGS: Final = {"relaxed": Flag.RELAXED, "noComplete": Flag.NO_COMPLETE, "read": Flag.READ_ONLY}
_WORD = 1  # some word: the number is in a register


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

    def _event(self, plan: FunctionPlan, instruction: Instruction, row: Row, constants: dict[Key, int]) -> TemplateEvent | None:
        kind = _NAMES.get(row.name) or _ACCESSES.get(row.access)
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
        return _described(TemplateEvent(kind or Event.POINT, site=number), instruction, row, constants)


def _constants(function: Function) -> dict[Key, int]:
    """The registers that are written once, with a number."""
    writers = {key: found[0] for key, found in definitions(function).items() if len(found) == 1 and found[0].predicate is None}
    moves = {key: each.operands[-1] for key, each in writers.items() if each.parts[0] == "mov"}
    return {key: int(operand.value) for key, operand in moves.items() if isinstance(operand, Immediate) and isinstance(operand.value, int)}


def _value(operand: Operand, instruction: Instruction, constants: dict[Key, int]) -> int | None:
    if isinstance(operand, Immediate):
        return operand.value if isinstance(operand.value, int) else None
    return constants.get(key_of(instruction.scope, operand.text))


def _described(event: TemplateEvent, instruction: Instruction, row: Row, constants: dict[Key, int]) -> TemplateEvent:
    numbers: dict[str, int] = {}
    given = dict(zip(row.roles(instruction), instruction.operands, strict=True))
    for name, role in zip("ab", _NUMBERS.get(Event(event.kind), ()), strict=False):
        if role in given:
            numbers |= _number(name, _value(given[role], instruction, constants))
        elif event.kind == Event.BARRIER and name == "b":
            numbers["b"] = -1
    if event.kind in _GROUPS:
        numbers |= _number("a", _value(instruction.operands[0], instruction, constants))
    flags = sum(int(flag) for word, flag in _FLAGS.items() if word in instruction.parts)
    flags |= int(Flag.NARROW) if "cta" in instruction.parts else 0
    flags |= int(Flag.WAITS) if event.kind == Event.BARRIER and row.action != "arrive" else 0
    return TemplateEvent(**(vars(event) | numbers | {"flags": flags}))


def _number(name: str, value: int | None) -> dict[str, int]:
    return {f"{name}_word": _WORD} if value is None else {name: value}
