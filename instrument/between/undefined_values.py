"""Whether a value that a shuffle takes from a lane that is not there is used for certain (ISA "shfl.sync": such a result is undefined).

A lane is not there if it has exited, if the CTA does not have it, or if it is not in the mask. Its value is used if it decides a branch or
an address, or is stored in memory that outlives the kernel. A value that follows from an undefined value is undefined too, also in lanes
that take it by a further shuffle.

Decides from the text of one kernel, lane by lane, on all paths that the index of a lane's thread does not rule out: a value counts as
undefined only if it is on each of them, and as used only if the lane comes to the use on each. A choice or a guard that is not known
hides a value, and so does a product or a logical operation.

Not followed, so that no use is found: values through memory and calls, and shuffles whose operands the text does not show.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from consan.dataclass import dataclass
from consan.instrument.between.data import DataFlow
from consan.instrument.between.decided import DecidedBranches, holds
from consan.instrument.between.value_uses import used
from consan.instrument.control_flow import Graph, Key, PathStep, graph_of, keys_read, written
from consan.instrument.control_flow.paths import reached
from consan.instrument.control_flow.slices import operand_keys
from consan.instrument.effects import LANES
from consan.instrument.isa import chooses, never_hidden, row_of, scales, shuffles
from consan.instrument.ptx import Function, Immediate, Instruction, Module, Operand, Vector
from consan.instrument.relations import UndefinedUse, Warp
from consan.instrument.rewriting.context import place_of

_ALL: Final = 0xFFFFFFFF
ENDS: Final = ("store", "branch", "address")
_Masks = dict[Key, int]  # the lanes in which a register is undefined


@dataclass
class _State:
    """The state before an instruction: the lanes that may be there, and those in which registers are undefined."""

    here: int
    undefined: _Masks

    def joined(self, other: _State) -> _State:
        """The state of both ways, lane by lane."""
        keys = self.undefined.keys() | other.undefined.keys()
        masks = {key: self._or_absent(key, other) & other._or_absent(key, self) for key in keys}
        here = self.here | other.here
        return _State(here, {key: mask & here for key, mask in masks.items() if mask & here})

    def _or_absent(self, key: Key, other: _State) -> int:
        return self.undefined.get(key, 0) | (other.here & ~self.here)


class UndefinedValues:
    """The undefined values of one kernel."""

    def __init__(self, module: Module, function: Function, data: DataFlow) -> None:
        self._module, self._data, self._graph = module, data, graph_of(function)
        self._decided = DecidedBranches(self._graph, data)
        self._known: dict[tuple[int, Warp], UndefinedUse | None] = {}

    @cached_property
    def certain(self) -> tuple[int, ...]:
        """The PTX lines of shuffles that all threads come to."""
        always, nodes = self._graph.post_dominators.sets[self._graph.entries[0]], self._graph.nodes
        steps = (step for number, node in enumerate(nodes) if always >> number & 1 for step in node.steps)
        return tuple(self._line(step.instruction) for step in steps if step.guard is None and shuffles(step.instruction))

    def use(self, line: int, warp: Warp) -> UndefinedUse | None:
        """The use of an undefined value that a warp gets at the shuffle of a PTX line, or behind it in its block."""
        if (line, warp) not in self._known:
            self._known[line, warp] = self._found(line, warp)
        return self._known[line, warp]

    def _found(self, line: int, warp: Warp) -> UndefinedUse | None:
        for number, node in enumerate(self._graph.nodes):
            first = next((at for at, step in enumerate(node.steps) if self._line(step.instruction) == line), len(node.steps))
            for at in range(first, len(node.steps)):
                if shuffles(node.steps[at].instruction) and (
                    found := self._use_of(_Walk(self._graph, self._data, self._decided, warp, number, at))
                ):
                    return found
        return None

    def _use_of(self, walk: _Walk) -> UndefinedUse | None:
        found = next(walk.uses(), None) if walk.sources else None
        if found is None:
            return None
        user, lane, end = found
        taker = lane if lane in walk.sources else min(walk.sources)
        source, places = walk.sources[taker], (place_of(self._module, walk.shuffle), place_of(self._module, user))
        return UndefinedUse(end, *places, taker, source, lane, walk.names(source, taker))

    def _line(self, instruction: Instruction) -> int:
        return place_of(self._module, instruction).ptx_line


class _Walk:
    """The undefined values of one shuffle of a warp. `sources`: by lane that gets an undefined value there, the lane that is not there."""

    def __init__(self, graph: Graph, data: DataFlow, decided: DecidedBranches, warp: Warp, home: int, at: int) -> None:
        self._graph, self._data, self._warp, self._home, self._at = graph, data, warp, home, at
        self._lanes = [lane for lane in range(LANES) if warp.came >> lane & 1]
        self._decisions = {lane: decided.of_thread(warp.threads[lane]) for lane in self._lanes}
        self._edges = self._edges_of(decided)
        self.shuffle = graph.nodes[home].steps[at].instruction
        taken = self._taken(self.shuffle)
        self.sources = {lane: source for lane, source in taken.items() if not warp.came >> source & 1}

    def _edges_of(self, decided: DecidedBranches) -> dict[int, list[tuple[int, ...]]]:
        known = dict[tuple[int | None, ...], list[tuple[int, ...]]]()
        return {lane: known.setdefault(tuple(each.values()), decided.edges(each)) for lane, each in self._decisions.items()}

    def names(self, source: int, taker: int) -> bool:
        """Whether the mask of the shuffle has a lane, as far as the text shows."""
        mask = self._number(self.shuffle, self.shuffle.operands[4], taker)
        return mask is None or bool(mask >> source & 1)

    def uses(self) -> Iterator[tuple[Instruction, int, str]]:
        """The uses of undefined values that a lane makes for certain, with the lane, in text order."""
        nodes = self._graph.nodes
        for number, state in ((self._home, self._start), *sorted(self._states().items())):
            first = self._at + 1 if state is self._start else 0
            state = _State(state.here, dict(state.undefined))
            for step in nodes[number].steps[first:]:
                lanes = state.here & self._executes(step)[0]
                for end, mask in self._ends(step, state):
                    certain = (lane for lane in self._lanes if mask >> lane & 1 and (lanes >> lane & 1 or end == "branch"))
                    yield from ((step.instruction, lane, end) for lane in certain if self._comes(lane, number, first))
                self._pass(step, state)

    def _ends(self, step: PathStep, state: _State) -> Iterator[tuple[str, int]]:
        """The ends of undefined values at an instruction, with the lanes."""
        instruction = step.instruction
        keys = {*keys_read(instruction)} | ({step.guard.register} if step.guard else set())
        for key in sorted(keys & state.undefined.keys()):
            guards = step.guard is not None and step.guard.register == key and row_of(instruction).is_arithmetic
            ends = () if guards else used(instruction, key, anyone=False)
            yield from ((each, state.undefined[key]) for each in ends if isinstance(each, str) and each in ENDS)

    def _comes(self, lane: int, number: int, first: int) -> bool:
        """Whether a lane comes from the shuffle to a node on each of its ways. `first`: not 0 in the node of the shuffle."""
        if first:
            return True
        edges = self._edges[lane]
        if self._leaves(self._home, lane):
            return False
        ways = reached(edges, edges[self._home], without={number})
        return number in reached(edges, edges[self._home]) and not any(self._leaves(each, lane) for each in ways)

    def _leaves(self, number: int, lane: int) -> bool:
        node, edges = self._graph.nodes[number], self._edges[lane][number]
        undecided = node.guard is None or self._decisions[lane].get(node.guard.register) is None
        return not edges or (node.may_leave and undecided)

    # --- states ---

    @cached_property
    def _start(self) -> _State:
        """Behind the shuffle."""
        mask = sum(1 << lane for lane in self.sources)
        return _State(self._warp.came, dict.fromkeys(_result(self.shuffle), mask))

    def _states(self) -> dict[int, _State]:
        """Before each node that a lane may come to from the shuffle."""
        states, pending = dict[int, _State](), list[int]()

        def spread(number: int, state: _State) -> None:
            for after in dict.fromkeys(self._graph.successors[number]):
                here = sum(1 << lane for lane in self._lanes if state.here >> lane & 1 and after in self._edges[lane][number])
                fresh = _State(here, {key: mask & here for key, mask in state.undefined.items() if mask & here})
                joined = states[after].joined(fresh) if after in states else fresh
                if here and states.get(after) != joined:
                    states[after] = joined
                    pending.append(after)

        spread(self._home, self._passed(self._home, self._start, self._at + 1))
        while pending:
            number = pending.pop()
            spread(number, self._passed(number, states[number]))
        return states

    def _passed(self, number: int, before: _State, first: int = 0) -> _State:
        state = _State(before.here, dict(before.undefined))
        for step in self._graph.nodes[number].steps[first:]:
            self._pass(step, state)
        return state

    def _pass(self, step: PathStep, state: _State) -> None:
        """Change a state by an instruction."""
        keys = _result(step.instruction)
        made = self._made(step.instruction, state) if keys else 0
        executes, known = self._executes(step)
        guard = state.undefined.get(step.guard.register, 0) if step.guard is not None else 0
        for key in written(step.instruction):
            result, old = made if key in keys else 0, state.undefined.get(key, 0)
            state.undefined[key] = state.here & ((result & executes) | (old & known & ~executes) | (~known & (guard | (result & old))))
            if not state.undefined[key]:
                del state.undefined[key]

    def _executes(self, step: PathStep) -> tuple[int, int]:
        """The lanes that execute an instruction for certain, and the lanes for which the text decides that."""
        if step.guard is None:
            return _ALL, _ALL
        held = {lane: self._decisions[lane].get(step.guard.register) for lane in self._lanes}
        known = {lane: holds(step.guard, value) for lane, value in held.items() if value is not None}
        return sum(1 << lane for lane, does in known.items() if does), sum(1 << lane for lane in known)

    # --- instructions ---

    def _made(self, instruction: Instruction, state: _State) -> int:
        """The lanes in which the result is undefined."""
        row = row_of(instruction)
        if shuffles(instruction):
            given, gone = self._of(instruction, instruction.operands[1], state), self._warp.gone
            return sum(1 << lane for lane, source in self._taken(instruction).items() if (given | gone) >> source & 1)
        if not row.is_arithmetic:
            return 0
        masks = [self._of(instruction, operand, state) for operand in instruction.operands]
        always = 0
        for number in never_hidden(instruction):
            always |= masks[number]
        if scales(instruction):
            always = masks[1] * _is_factor(instruction.operands[2]) | masks[2] * _is_factor(instruction.operands[1])
        if chooses(instruction):
            always = masks[3] | self._chosen(instruction, masks)
        both = _ALL
        for mask in masks[1:]:
            both &= mask
        return always | both

    def _chosen(self, instruction: Instruction, masks: Sequence[int]) -> int:
        found = masks[1] & masks[2]
        for lane in self._lanes:
            held = self._number(instruction, instruction.operands[3], lane)
            if held is not None:
                found |= masks[1 if held else 2] & 1 << lane
        return found

    def _of(self, instruction: Instruction, operand: Operand, state: _State) -> int:
        """The lanes in which an operand is undefined: of a vector, all of its elements."""
        parts = operand.elements if isinstance(operand, Vector) else (operand,)
        mask = _ALL
        for part in parts:
            keys = list(operand_keys(instruction, part))
            mask &= state.undefined.get(keys[0], 0) if len(keys) == 1 else 0
        return mask

    def _taken(self, shuffle: Instruction) -> dict[int, int]:
        """By lane, the lane whose value it takes in a shuffle. Lanes whose source the text does not show are left out."""
        found = dict[int, int]()
        for lane in self._lanes:
            offset, limits = (self._number(shuffle, shuffle.operands[number], lane) for number in (2, 3))
            if offset is not None and limits is not None:
                found[lane] = source_lane(shuffles(shuffle), lane, offset, limits)
        return found

    def _number(self, instruction: Instruction, operand: Operand, lane: int) -> int | None:
        return self._data.operand(operand, instruction).of(self._warp.threads[lane])


def source_lane(mode: str, lane: int, offset: int, limits: int) -> int:
    """The lane whose value a lane takes: its own one if the other is out of range (ISA "shfl.sync", Semantics)."""
    offset, clamp, segment = offset & 31, limits & 31, limits >> 8 & 31
    last, first = (lane & segment) | (clamp & ~segment), lane & segment
    source = {"up": lane - offset, "down": lane + offset, "bfly": lane ^ offset, "idx": first | (offset & ~segment)}[mode]
    return source if (source >= last if mode == "up" else source <= last) else lane


def _result(instruction: Instruction) -> tuple[Key, ...]:
    """The registers that get the result. The predicate of a shuffle says whether its source is in range: it is never undefined."""
    return written(instruction)[:1] if shuffles(instruction) else written(instruction)


def _is_factor(operand: Operand) -> bool:
    return isinstance(operand, Immediate) and bool(operand.value)
