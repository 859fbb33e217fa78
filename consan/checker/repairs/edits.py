"""A change (changes.py) as edits of the PTX: what a patch consists of, and what a run of the changed kernel needs.

An event stands for its instruction. Lines keep their numbers. An instruction that is added after a wait at an mbarrier goes where the wait
has returned true; one that is added before it goes before the polling loop. Not possible: counts that an instruction leaves out, and loops
that are entered by a jump.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from consan.checker.questions.changes import Change, EventPlaces
from consan.checker.questions.pieces import ptx_of
from consan.dataclass import dataclass
from consan.instrument import effects
from consan.instrument.control_flow import BasicBlock, graph_of
from consan.instrument.effects.model import leaves
from consan.instrument.isa import lookup
from consan.instrument.ptx import Function, Immediate, Instruction, Module
from consan.instrument.sites import Site

Edit = tuple[int, int, str]  # a range of the text, and what comes in its place
_HIGH = 1 << 63  # the parity in the state of an mbarrier

# The operand that holds a number of an event.
_ROLES: dict[tuple[type[effects.Effect], str], tuple[str, ...]] = {
    (effects.MbarrierInit, "count"): ("count",),
    (effects.MbarrierArrive, "count"): ("count",),
    (effects.MbarrierArrive, "expected"): ("tx-count",),
    (effects.MbarrierTransaction, "size"): ("tx-count",),
    (effects.MbarrierWait, "parity"): ("parity", "state"),
    (effects.CtaBarrier, "threads"): ("count",),
}
_SEMANTICS: dict[type[effects.Effect], str] = {effects.MbarrierWait: "acquire", effects.MbarrierArrive: "release"}


class Impossible(Exception):  # noqa: N818
    """The change cannot be written into the text."""


def edits_of(module: Module, places: EventPlaces, change: Change) -> tuple[Edit, ...]:
    """The edits, in the order of the text. Raises `Impossible`."""
    text = _Text(module)
    found: dict[Edit, None] = {}
    for spot in sorted(change):
        found |= dict.fromkeys(text.replaced(places[spot], places.sites, change[spot]))
    return tuple(sorted(found, key=lambda edit: edit[:2]))


def _by_text(module: Module) -> dict[tuple[int, str], tuple[Function, Instruction]]:
    """The instructions of a module by their lines and their words."""
    return {(each.line, " ".join(each.text.split())): (function, each) for function in module.functions for each in function.sequence}


@dataclass
class _Text:
    module: Module

    def _find(self, site: Site) -> tuple[Function, Instruction]:
        words = site.ptx.split()
        bare = words[1:] if words[0].startswith("@") else words  # a condition that only the recorded text has
        known = self.module.once(_by_text)
        found = next(filter(None, (known.get((site.ptx_line, " ".join(each))) for each in (words, bare))), None)
        if found is None:
            raise Impossible(f"PTX line {site.ptx_line} is not found")
        return found

    def replaced(self, old: effects.Effect, sites: dict[int, Site], new: tuple[effects.Effect, ...]) -> Iterator[Edit]:
        """The edits for what comes in place of one event."""
        function, instruction = self._find(sites[old.site])
        if not new:
            yield instruction.start, instruction.end, ""
        elif old in new:
            at = new.index(old)
            texts = [ptx_of(each) if each.site == 0 else self._find(sites[each.site])[1].text for each in new]
            if before := texts[:at]:
                start = _entry(function, instruction) if isinstance(old, effects.MbarrierWait) else instruction.start
                yield start, start, "".join(f"{each} " for each in before)
            if after := "".join(f" {each}" for each in texts[at + 1 :]):
                yield instruction.end, instruction.end, _where_true(instruction, after) if isinstance(old, effects.MbarrierWait) else after
        else:
            yield instruction.start, instruction.end, _altered(instruction, old, new[0])


def _where_true(wait: Instruction, text: str) -> str:
    """Text that runs where a wait has returned true."""
    label = f"$consan_true_{wait.start}"
    return f" @!{wait.operands[0].text.partition('|')[0]} bra {label};{text} {label}:"


def _entry(function: Function, wait: Instruction) -> int:
    """The place before the loop that polls: its only other way in falls through."""
    graph = graph_of(function)
    number, node = next((number, node) for number, node in enumerate(graph.nodes) if any(step.instruction is wait for step in node.steps))
    ways = graph.predecessors[number]
    if ways and all(each < number for each in ways):
        return wait.start
    outside = [each for each in ways if each < number]
    if len(outside) != 1 or graph.nodes[outside[0]].falls != number or number in graph.nodes[outside[0]].taken:
        raise Impossible("the loop of a wait is entered by a jump")
    before = _last(graph.nodes[outside[0]])
    return before.end if before is not None else node.steps[0].instruction.start


def _last(node: BasicBlock) -> Instruction | None:
    return node.steps[-1].instruction if node.steps else None


def _altered(instruction: Instruction, old: effects.Effect, new: effects.Effect) -> str:
    """An instruction with the operands and the opcode of an altered event."""
    text = instruction.text
    numbers = [_with_number(field) for kind, field in _ROLES if kind is type(new)]
    for alter in (_with_opcode, _with_groups, *numbers):
        text = alter(instruction, old, new, text)
    if text == instruction.text:
        raise Impossible(f"{instruction.opcode} has no such form")
    return text


def _with_opcode(instruction: Instruction, old: effects.Effect, new: effects.Effect, text: str) -> str:
    opcode = instruction.opcode
    gone = {leaf.name for leaf in leaves(type(old)) if leaf.means is bool and getattr(old, leaf.name) and not getattr(new, leaf.name)}
    if "read_only" in gone:
        opcode = opcode.replace(".read", "")
    if "no_complete" in gone:
        opcode = opcode.replace(".noComplete", "")
    if "relaxed" in gone:
        opcode = opcode.replace(".relaxed", f".{_SEMANTICS[type(new)]}" if type(new) in _SEMANTICS else "")
    if "narrow" in gone:
        opcode = _widened(opcode, "cluster", new)
    if getattr(new, "order", 0) != getattr(old, "order", 0):
        opcode = _widened(opcode, "gpu", new)
    return text.replace(instruction.opcode, opcode, 1)


def _widened(opcode: str, scope: str, event: effects.Effect) -> str:
    parts = opcode.split(".")
    if opcode.startswith("membar"):
        return f"fence.sc.{scope}"
    at = next((place for place, part in enumerate(parts) if part in ("cta", "cluster")), None)
    if at is not None:
        parts[at] = scope
    elif type(event) in _SEMANTICS:
        words = ("mbarrier", "arrive", "arrive_drop", "expect_tx", "noComplete", "test_wait", "try_wait", "parity")
        at = next(place for place, part in enumerate(parts) if part not in words)
        parts[at:at] = [_SEMANTICS[type(event)], scope]
    return ".".join(parts)


def _with_groups(instruction: Instruction, old: effects.Effect, new: effects.Effect, text: str) -> str:
    if not (isinstance(new, effects.GroupWait) and isinstance(old, effects.GroupWait)) or new.pending == old.pending:
        return text
    return text.replace(instruction.text, f"{text.removesuffix(';').rsplit(None, 1)[0]} {new.pending.number};")


def _with_number(field: str) -> Callable[[Instruction, effects.Effect, effects.Effect, str], str]:
    """Another number in an operand; a register gets a new one for it."""

    def alter(instruction: Instruction, old: effects.Effect, new: effects.Effect, text: str) -> str:
        number, before = getattr(new, field), getattr(old, field)
        step, replaced = number.number - before.number, number.word != before.word
        roles = _ROLES[type(new), field]
        if not (step or replaced):
            return text
        row = lookup(instruction.parts)
        assert row is not None
        found = [(role, each) for role, each in zip(row.roles(instruction), instruction.operands, strict=True) if role in roles]
        if not found:
            raise Impossible(f"{instruction.opcode} leaves out the {roles[0]}")
        role, operand = found[0]
        head, _, tail = text.removesuffix(";").rpartition(operand.text)
        if isinstance(new, effects.CtaBarrier):
            return f"{head.rstrip().removesuffix(',')}{tail};"
        if isinstance(operand, Immediate):
            return f"{head}{number.number}{tail};"
        bits, code = "b32", f"mov.b32 other, {number.number}" if replaced else f"add.s32 other, {operand.text}, {step}"
        if role == "state":
            bits, code = "b64", f"xor.b64 other, {operand.text}, {_HIGH}"
        return f"{{ .reg .{bits} other; {code}; {head}other{tail}; }}"

    return alter
