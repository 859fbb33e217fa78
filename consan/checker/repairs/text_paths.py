"""Repairs that change which threads reach an instruction, and when, as edits of the text (see text_repairs.py).

An instruction loses its condition, or moves to a place further up; a loop has one turn more or less.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Collection, Iterator
from dataclasses import field
from typing import Final

from consan.checker.questions.changes import EventPlaces, Statement, line_of, statement_of
from consan.checker.repairs.edits import Edit
from consan.checker.repairs.forms import RepairStep
from consan.checker.repairs.text_places import TextPlaces
from consan.dataclass import dataclass
from consan.instrument import effects
from consan.instrument.control_flow import definitions, graph_of, key_of, keys_read, written
from consan.instrument.control_flow.paths import reached
from consan.instrument.isa import announces_bytes, compares, computes, lookup, row_of, sums
from consan.instrument.ptx import Function, Immediate, Instruction, Label, Module
from consan.instrument.rewriting.context import place_of
from consan.instrument.sites import Site

_SIGNALS: Final = (
    effects.CtaBarrier,
    effects.MbarrierInit,
    effects.MbarrierArrive,
    effects.MbarrierTransaction,
    effects.ClusterBarrierArrive,
    effects.MbarrierCopies,
)
OF_BARRIERS: Final = ("barrier-misuse", "deadlock")
_RANKS: Final = (0, 1)
_CLUSTER: Final = ("barrier.cluster.arrive", "barrier.cluster.wait")
_SYNCHRONISING: Final = {"no-warp-sync": ("bar.warp.sync 0xffffffff",), "cluster": _CLUSTER, "after-exit": _CLUSTER}
_ONE_FOR_ALL: Final = ("released-by-other", "other-threads")  # one thread releases or acquires a flag for its CTA
_FLAGS: Final = (effects.Fence, effects.Atomic, effects.Read, effects.Write)
_OF_ORDER: Final = ("data-race", "global-race", "missing-wait", "uninitialized-read", "barrier-misuse")


@dataclass(frozen=True)
class TextRepair:
    """Steps, and the edits that they make."""

    steps: tuple[RepairStep, ...]
    edits: tuple[Edit, ...]


@dataclass
class PathForms:
    """The candidate repairs of the paths of one finding. `lines`: of the finding, in the PTX; `block`: the threads of a CTA."""

    text: TextPlaces
    kind: str
    situation: str
    lines: frozenset[int]
    block: tuple[int, int, int]
    _sites: dict[int, int] = field(init=False)  # of instructions, by their place in the text

    def __post_init__(self) -> None:
        lines = {site.ptx_line: number for number, site in self.places.sites.items()}
        self._sites = {
            each.start: lines[each.line] for function in self._functions for each in function.instructions() if each.line in lines
        }

    @property
    def places(self) -> EventPlaces:
        """The events of the text."""
        return self.text.places

    @property
    def _functions(self) -> list[Function]:
        return [each for each in self.text.module.functions if each.body is not None]

    @functools.cached_property
    def _own(self) -> list[tuple[Function, Instruction]]:
        """The instructions of the finding."""
        return self._at(self.lines)

    def _at(self, lines: Collection[int]) -> list[tuple[Function, Instruction]]:
        return [(function, each) for function in self._functions for each in function.instructions() if each.line in lines]

    def _of_kinds(self, kinds: tuple[type[effects.Effect], ...]) -> list[tuple[Function, Instruction]]:
        spots = self.places.spots(lambda event: isinstance(event, kinds))
        return self._at({self.places.sites[self.places[spot].site].ptx_line for spot in spots})

    def _with(self, kinds: tuple[type[effects.Effect], ...]) -> list[tuple[Function, Instruction]]:
        """The instructions of the finding, then all of some kinds."""
        return list({each.start: (function, each) for function, each in (*self._own, *self._of_kinds(kinds))}.values())

    # -- steps -------------------------------------------------------------------------------------------------------------

    def _site(self, function: Function, instruction: Instruction) -> int:
        """The number of an instruction's site; a branch gets one here."""
        if instruction.start not in self._sites:
            number = max(self.places.sites, default=0) + 1
            place = place_of(self.text.module, instruction)
            self.places.sites[number] = Site(number, function.name, instruction.opcode, "", "none", "", 0, **vars(place))
            self._sites[instruction.start] = number
        return self._sites[instruction.start]

    def _repair(self, action: str, words: str, at: tuple[Function, Instruction], *edits: Edit) -> TextRepair:
        return TextRepair((RepairStep(action, words, "at", self._site(*at)),), edits)

    def _other(self, at: tuple[Function, Instruction], text: str, words: str = "") -> Iterator[TextRepair]:
        """An instruction in another form."""
        instruction = at[1]
        if text != instruction.text:
            yield self._repair("alter", words or text.rstrip(";"), at, (instruction.start, instruction.end, text))

    def _unconditional(self) -> Iterator[TextRepair]:
        """Without the guard of an instruction, or a branch around it, the nearest first."""
        if self.kind not in OF_BARRIERS:
            return
        releases = (effects.Write, effects.Atomic) if self.situation == "lock" else ()
        for function, instruction in self._with((*_SIGNALS, *releases)):
            if instruction.predicate is not None:
                guard = re.match(r"@!?\S+\s+", instruction.text)
                end = instruction.start + (guard.end() if guard else 0)
                yield self._repair("leave-out", "condition", (function, instruction), (instruction.start, end, ""))
            for branch in reversed(_branches_around(function, instruction)):
                if not _cuts_off(function, branch):
                    yield self._repair("leave-out", "condition", (function, branch), (branch.start, branch.end, ""))

    def _around_branches(self) -> Iterator[TextRepair]:
        """A barrier where the branch around an access begins, or where it ends: of the warp, if lanes race; of the cluster; of the CTA."""
        if self.kind not in _OF_ORDER and self.situation != "after-exit":
            return
        narrow = next((barrier for situation, barrier in _SYNCHRONISING.items() if self.situation.startswith(situation)), ())
        barriers = (narrow, ("bar.sync 0",)) if narrow else (("bar.sync 0",),)
        for barrier, (function, instruction) in itertools.product(barriers, self._own[::-1]):
            for branch in reversed(_branches_around(function, instruction)):
                for each in filter(None, (branch, _behind(function, branch))):
                    steps = tuple(RepairStep("add", instruction, "before", self._site(function, each)) for instruction in barrier)
                    yield TextRepair(steps, ((each.start, each.start, "".join(f"{instruction}; " for instruction in barrier)),))

    def _around_flags(self) -> Iterator[TextRepair]:
        """A barrier of the CTA where a branch around a release or an acquire begins, or ends: in all copies of a function."""
        if self.situation not in _ONE_FOR_ALL:
            return
        around: dict[object, dict[int, tuple[Function, Instruction]]] = {}
        for function, flag in self._of_kinds(_FLAGS):
            for branch in _branches_around(function, flag)[-1:] if row_of(flag).is_fence or _is_strong(flag) else ():
                around.setdefault(self._line(function, branch), {})[branch.start] = (function, branch)
        for choose, copies in itertools.product((_itself, _behind), around.values()):
            at = [(function, each) for function, branch in copies.values() if (each := choose(function, branch)) is not None]
            steps = {self._line(*each): RepairStep("add", "bar.sync 0", "before", self._site(*each)) for each in at}
            yield TextRepair(tuple(steps.values()), tuple((each.start, each.start, "bar.sync 0; ") for _, each in at))

    def _line(self, function: Function, instruction: Instruction) -> object:
        """The line of an instruction, of the function that it was inlined from."""
        site = self.places.sites[self._site(function, instruction)]
        return (site.file, site.line) if site.line else site.ptx_line

    def _out_of_branches(self) -> Iterator[TextRepair]:
        """A barrier of the finding, all copies of it in an unrolled loop, goes to where the branch around it ends, or begins."""
        barriers = [(function, each) for function, each in self._of_kinds((effects.CtaBarrier,)) if len(each.operands) == 1]
        named = dict.fromkeys(self._statement(*own) for own in self._own)
        for statement, choose in itertools.product(named, (_behind, _itself)) if self.kind in _OF_ORDER else ():
            steps: dict[object, RepairStep] = {}
            edits: list[Edit] = []
            for function, barrier in (each for each in barriers if self._statement(*each) == statement):
                around = _branches_around(function, barrier)
                each = choose(function, around[-1]) if around else None
                if each is not None:
                    site = self._site(function, each)
                    own = self._site(function, barrier)
                    steps.setdefault(line_of(self.places.sites[site]), RepairStep("move", barrier.opcode, "before", site, own=own))
                    text = f"{barrier.opcode} {barrier.operands[0].text}; "
                    edits += [(each.start, each.start, text), (barrier.start, barrier.end, "")]
            if edits:
                yield TextRepair(tuple(steps.values()), tuple(edits))

    def _statement(self, function: Function, instruction: Instruction) -> Statement:
        return statement_of(self.places.sites[self._site(function, instruction)])

    def _earlier(self) -> Iterator[TextRepair]:
        """An arrival before a branch around it, or before a barrier or a branch around a wait of the finding."""
        if self.kind != "deadlock":
            return
        for function, arrival in self._of_kinds((effects.MbarrierArrive, effects.MbarrierTransaction)):
            branches = [*_branches_around(function, arrival), *(each for _, own in self._own for each in _branches_around(function, own))]
            barriers = [own for _, own in self._own if row_of(own).is_barrier]
            for each in dict.fromkeys((*barriers, *(_condition_of(function, branch) for branch in reversed(branches)))):
                code = _with_operands(function, arrival, each.start) if each.start < arrival.start else ""
                if code:
                    step = RepairStep("move", arrival.opcode, "before", self._site(function, each), own=self._site(function, arrival))
                    yield TextRepair((step,), ((each.start, each.start, code), (arrival.start, arrival.end, "")))

    # -- loops, and CTAs ---------------------------------------------------------------------------------------------------

    def _turns(self) -> Iterator[TextRepair]:
        """One turn less or more of a loop around an instruction of the finding, where a number bounds the loop."""
        if self.kind not in OF_BARRIERS:
            return
        for function, instruction in self._own:
            for branch in loops_around(function, instruction):
                for test in _tests(function, branch):
                    old = next(each for each in test.operands if isinstance(each, Immediate))
                    for new in (_plus(old, -1), _plus(old, 1)):
                        operands = [new if each is old else each.text for each in test.operands]
                        words = f"{test.opcode} with {new} in place of {old.text}"
                        yield from self._other((function, test), f"{test.opcode} {', '.join(operands)};", words)

    def _dropped(self) -> Iterator[TextRepair]:
        """Threads that leave a loop no longer count at its mbarriers."""
        if self.kind != "deadlock":
            return
        for function, arrival in self._of_kinds((effects.MbarrierArrive,)):
            opcode = arrival.opcode.replace(".arrive.", ".arrive_drop.", 1)
            for branch in loops_around(function, arrival) if opcode != arrival.opcode and not announces_bytes(opcode) else ():
                step = RepairStep("add", opcode, "after", self._site(function, branch))
                yield TextRepair((step,), ((branch.end, branch.end, f" {arrival.text.replace(arrival.opcode, opcode, 1)}"),))

    def _ranks(self) -> Iterator[TextRepair]:
        """The mbarrier of another CTA of the cluster."""
        if self.kind not in OF_BARRIERS:
            return
        for function in self._functions:
            for each in function.instructions():
                if row_of(each).maps_address:
                    for rank in _RANKS:
                        text = f"{each.opcode} {', '.join((*(operand.text for operand in each.operands[:2]), str(rank)))};"
                        yield from self._other((function, each), text, f"{each.opcode} of rank {rank}")


def _branches_around(function: Function, instruction: Instruction) -> list[Instruction]:
    """The conditional branches forwards over an instruction, in the order of the text; none whose removal closes a loop."""
    found = []
    for each in itertools.takewhile(lambda other: other.start < instruction.start, function.instructions()):
        if _condition_of(function, each).predicate is None:
            continue
        end = _target(function, each)
        leaves = row_of(each).leaves
        if leaves or (end > instruction.start and not _goes_back(function, each.start, end)):
            found.append(each)
    return found


def _is_strong(instruction: Instruction) -> bool:
    row = row_of(instruction)
    return row.is_update or (bool(row.touches) and row.describe(instruction).is_strong)


def is_for_all(module: Module, start: int) -> bool:
    """Whether no condition decides about a place of the text, but for threads that leave before it."""
    function = next((each for each in module.functions if each.body is not None and each.start <= start < each.end), None)
    instruction = next((each for each in function.instructions() if each.start >= start), None) if function else None
    if function is None or instruction is None:
        return False
    return all(row_of(each).leaves for each in _branches_around(function, instruction))


def _cuts_off(function: Function, branch: Instruction) -> bool:
    """Whether accesses that threads can make now are dead without a branch: the other arm of a condition does work of its own."""
    graph = graph_of(function)
    ends = {node.steps[-1].instruction.start: number for number, node in enumerate(graph.nodes) if node.steps}
    follows, at = list(graph.successors), ends[branch.start]
    before = reached(follows, graph.entries)
    follows[at] = (at + 1,) if at + 1 < len(follows) else ()
    dead = before - reached(follows, graph.entries)
    return any((row := lookup(step.instruction.parts)) is not None and row.touches for number in dead for step in graph.nodes[number].steps)


def _behind(function: Function, branch: Instruction) -> Instruction | None:
    """The instruction at which a branch ends."""
    end = _target(function, branch)
    return next((each for each in function.instructions() if each.start >= end), None) if end else None


def _itself(_function: Function, branch: Instruction) -> Instruction:
    return branch


def _goes_back(function: Function, start: int, end: int) -> bool:
    return any(start < branch < end and 0 < target <= start for branch, target in function.once(_targets).items())


def _condition_of(function: Function, branch: Instruction) -> Instruction:
    """The branch with the condition: the one before, if that goes to what stands behind this one. Compilers make two of one so."""
    if branch.predicate is not None or not row_of(branch).branches:
        return branch
    every, at = function.sequence, function.once(_numbers)[branch.start]
    before, behind = every[max(at - 1, 0)], every[at + 1].start if at + 1 < len(every) else 0
    return before if before.predicate is not None and _target(function, before) == behind else branch


def loops_around(function: Function, instruction: Instruction) -> list[Instruction]:
    """The conditional branches backwards over an instruction, the nearest first."""
    behind = (each for each in function.instructions() if each.start > instruction.start and each.predicate is not None)
    return [each for each in behind if 0 < _target(function, each) <= instruction.start]


def _tests(function: Function, branch: Instruction) -> Iterator[Instruction]:
    """The comparisons of a counter with a number that close a loop. A counter is a register to which a number is added."""
    writers = definitions(function)
    for test in writers.get(key_of(branch.scope, branch.predicate.register), []) if branch.predicate else ():
        if compares(test) and test.predicate is None and any(isinstance(each, Immediate) for each in test.operands):
            counted = (writers.get(key, []) for key in keys_read(test))
            if any(sums(each) and isinstance(each.operands[-1], Immediate) for found in counted for each in found):
                yield test


def _plus(number: Immediate, step: int) -> str:
    return str(int(number.value) + step)


def _with_operands(function: Function, instruction: Instruction, start: int) -> str:
    """An instruction for an earlier place, with copies of those between that compute its operands; empty if that may alter values."""
    needed, code, writers = set(keys_read(instruction)), [instruction.text], definitions(function)
    for each in reversed([each for each in function.instructions() if start <= each.start < instruction.start]):
        keys = set(written(each)) & needed
        if not keys:
            continue
        if not _is_pure(each) or each.predicate is not None or any(len(writers[key]) > 1 for key in keys):
            return ""
        needed |= set(keys_read(each))
        code.insert(0, each.text)
    return "".join(f"{each} " for each in code)


def _is_pure(instruction: Instruction) -> bool:
    row = row_of(instruction)
    return computes(instruction) or row.is_of_addresses or row.is_of_clusters


def _target(function: Function, instruction: Instruction) -> int:
    """The target of a branch: the first instruction behind its label; 0 if the instruction is no branch."""
    return function.once(_targets).get(instruction.start, 0)


def _targets(function: Function) -> dict[int, int]:
    """The targets of the branches, by their start."""
    statements = list(function.body.walk()) if function.body is not None else []
    places, behind = dict[str, int](), 0
    for each in reversed(statements):
        if isinstance(each, Instruction):
            behind = each.start
        elif isinstance(each, Label):
            places[each.name] = behind or each.start
    branches = [each for each in function.sequence if row_of(each).branches]
    return {each.start: places.get(each.operands[-1].text, 0) for each in branches}


def _numbers(function: Function) -> dict[int, int]:
    """The places of the instructions in the sequence, by their start."""
    return {each.start: number for number, each in enumerate(function.sequence)}
