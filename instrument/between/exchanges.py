"""Whether a write of one lane comes after the reads of the other lanes of its warp because it needs a value that they have given.

A lane executes `shfl.sync`, `vote.sync`, `match.sync`, `redux.sync` or `mma.sync` with what it has loaded, so its load is over; the
result exists once all lanes are there. A write that needs the result (its address, value, guard or a branch) cannot overtake the loads.
The ISA orders no memory there (9.7.13), so this is an order in fact only.

Decides from the text of one kernel, for a full mask. Each path from the read must pass such an exchange before it comes to the write or to
an exit. The write must not come before the read without a barrier in between, and no lane may come to the one while another comes to the
other between the same two instructions at which all lanes meet.

Not followed: values that pass memory or a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from consan.instrument.between.synchronising import BARRIERS
from consan.instrument.control_flow import Key, definitions, graph_of, guard_of, key_of, read, written
from consan.instrument.control_flow.dataflow import forward
from consan.instrument.control_flow.paths import behind
from consan.instrument.control_flow.places import instructions_of, places_reached
from consan.instrument.functions.points import Members, members_of
from consan.instrument.isa import row_of
from consan.instrument.isa.roles import names
from consan.instrument.ptx import Function, Instruction, Register

_LOADED, _GIVEN = 1, 2  # a value depends on the load; on an exchange of such a value
_LEVELS = dict[Key, int]
_BRANCH = -2  # in place of a scope: the branch of a node


class Exchanges:
    """The exchanges of one kernel, and its accesses by their PTX lines."""

    def __init__(self, function: Function) -> None:
        self._graph = graph_of(function)
        self._steps = instructions_of(self._graph)
        made = definitions(function)
        self._exchanges = {id(each) for steps in self._steps for each in steps if _is_exchange(each, made)}
        direct = self._graph.post_dominators.control_dependence
        # with the branches that decide about these branches
        self._controls = [behind(direct, (number,)) for number in range(len(direct))]
        self._known: dict[tuple[int, int], bool] = {}

    def order(self, read_line: int, write_line: int) -> bool:
        """Whether exchanges order all reads of a PTX line before the writes of another one, or a barrier does."""
        name = (read_line, write_line)
        if name not in self._known:
            places = [list(self._at(line)) for line in name]
            self._known[name] = all(len(each) == 1 for each in places) and self._ordered(places[0][0], places[1][0])
        return self._known[name]

    def _at(self, line: int) -> Iterator[tuple[int, int]]:
        return ((node, step) for node, steps in enumerate(self._steps) for step, each in enumerate(steps) if each.line == line)

    def _ordered(self, load: tuple[int, int], store: tuple[int, int]) -> bool:
        return not self._converge_between(load, store) and self._follows_exchange(load, store)

    # -- where both may run ----------------------------------------------------------------------------------------------

    def _converge_between(self, load: tuple[int, int], store: tuple[int, int]) -> bool:
        """Whether lanes may execute the two between the same two points of convergence, or the store first, with no barrier behind it."""
        if load in self._reached((store[0], store[1] + 1), _is_barrier):
            return True
        starts = [(entry, 0) for entry in self._graph.entries]
        starts += [(node, at + 1) for node, steps in enumerate(self._steps) for at, each in enumerate(steps) if self._is_convergence(each)]
        return any({load, store} <= self._reached(start, self._is_convergence) for start in starts)

    def _is_convergence(self, instruction: Instruction) -> bool:
        return _is_barrier(instruction) or id(instruction) in self._exchanges

    def _reached(self, start: tuple[int, int], stops: Callable[[Instruction], bool]) -> set[tuple[int, int]]:
        """The places that a thread comes to from a place, without passing an instruction that stops it."""
        return set(places_reached(self._steps, self._graph.successors, (start,), stops))

    # -- what the store needs --------------------------------------------------------------------------------------------

    def _follows_exchange(self, load: tuple[int, int], store: tuple[int, int]) -> bool:
        """Whether each path from the load to the store makes it need an exchange of what was loaded."""
        at = self._steps[load[0]][load[1]]
        loaded = dict.fromkeys(written(at), _LOADED)
        if not loaded or at.predicate is not None:
            return False
        walk, edges = _Walk(self._steps, self._controls, self._exchanges, store), self._graph.successors
        after = walk.through(load[0], loaded, load[1] + 1)
        if after is not None:
            forward(edges, dict.fromkeys(edges[load[0]], after), walk.through, _least)
        return not walk.failed and walk.reached


class _Walk:
    """One walk from a load: the least that registers depend on it, on all paths."""

    def __init__(self, steps: list[list[Instruction]], controlled: list[set[int]], exchanges: set[int], store: tuple[int, int]) -> None:
        self._steps, self._controls, self._exchanges, self._store = steps, controlled, exchanges, store
        self.failed = self.reached = False

    def through(self, node: int, before: _LEVELS, first: int = 0) -> _LEVELS | None:
        """The levels behind a node; None where the walk ends."""
        if self.failed:
            return None
        levels = dict(before)
        context = max((levels.get((_BRANCH, str(each)), 0) for each in self._controls[node]), default=0)
        for at in range(first, len(self._steps[node])):
            instruction = self._steps[node][at]
            if _is_barrier(instruction):
                return None
            if (node, at) == self._store:
                self.reached = True
                self.failed |= max(context, _most(levels, _sources(instruction))) < _GIVEN
            self._step(instruction, levels, context)
            row = row_of(instruction)
            if row.turns and guard_of(instruction) is not None:
                levels[_BRANCH, str(node)] = _most(levels, _sources(instruction))
            self.failed |= row.leaves and not any(level == _GIVEN for level in levels.values())
        return levels

    def _step(self, instruction: Instruction, levels: _LEVELS, context: int) -> None:
        made = list(written(instruction))
        level = max(_most(levels, _sources(instruction)), context)
        if id(instruction) in self._exchanges:
            level = _GIVEN if level else 0
        elif row_of(instruction).calls:
            level = 0
        guard = guard_of(instruction)
        for key in made:
            kept = level if guard is None else max(levels.get(guard.register, 0), min(level, levels.get(key, 0)))
            levels[key] = kept


def _least(known: _LEVELS, levels: _LEVELS) -> _LEVELS | None:
    least = {key: min(level, levels.get(key, 0)) for key, level in known.items() if levels.get(key, 0)}
    return None if least == known else least


def _most(levels: _LEVELS, keys: Iterable[Key]) -> int:
    return max((levels.get(key, 0) for key in keys), default=0)


def _sources(instruction: Instruction) -> list[Key]:
    """The registers that an instruction needs, its guard included; of an exchange without its mask."""
    mask = set(names(instruction.operands[-1:])) if row_of(instruction).exchanges else set()
    found = [key_of(instruction.scope, name) for name in read(instruction) if name not in mask]
    guard = guard_of(instruction)
    return found if guard is None else [*found, guard.register]


def _is_exchange(instruction: Instruction, made: dict[Key, list[Instruction]]) -> bool:
    """Whether all lanes of the warp execute an instruction together, and each may get what others give."""
    row = row_of(instruction)
    together = (row.exchanges or row.computes_together) and instruction.predicate is None
    members = members_of(instruction) if together else None
    if members is None or not isinstance(members.mask, Register):
        return members is not None and members.is_warp
    moved = made.get(key_of(instruction.scope, members.mask.name), [])
    return len(moved) == 1 and row_of(moved[0]).moves and Members(moved[0].operands[-1]).is_warp


def _is_barrier(instruction: Instruction) -> bool:
    return instruction.predicate is None and BARRIERS["warp"](instruction)
