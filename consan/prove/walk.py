"""One thread that stands for all of a launch goes through a kernel, or from one of its barriers to the next ones.

Paths are joined where they meet: the thread is at a node under a condition, with registers that are choices between terms. A loop is
walked once, for an iteration whose number is a variable. Its registers at the begin of that iteration are its first ones and as many
steps as there were iterations, where the loop adds a step that it does not change; all others may have any value. To come to an
iteration behind the first one, the condition that led back to the head must have held in the one before.

Some registers go round: the number of a stage is one more behind each iteration, or zero again. The solver decides whether that is so for
each number that it can have. Then its value follows from the number of the iteration.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from consan.instrument.control_flow import Key, written
from consan.prove.kernel import ProvedKernel
from consan.prove.numbers import MOST, SMALL, Interval, Number, Symbols, chosen, hull, limits, number, plus, times, within
from consan.prove.operations import Value
from consan.prove.solver import Formula, ask, both, choice, either, opposite, z3
from consan.prove.step import SymbolicSteps, ThreadAccess
from consan.prove.uniform import Uniformity
from consan.prove.view import View

_MOST_STAGES: Final = 64  # numbers of a register that goes round
_SECONDS: Final = 1.0
Left = list[tuple[int, "PathState"]]


@dataclass
class PathState:
    """Where a thread is under a condition: its registers."""

    path: Formula
    registers: dict[Key, Value] = field(default_factory=dict)


class Walker:
    """Walks through one kernel. `shares`: what follows from uniform control is one value in all threads of a CTA."""

    def __init__(self, kernel: ProvedKernel, uniform: Uniformity, steps: SymbolicSteps, view: View, *, shares: bool) -> None:
        self._kernel, self._uniform, self.steps, self._view, self._shares = kernel, uniform, steps, view, shares
        self.symbols: Symbols = steps.symbols
        self.accesses: list[ThreadAccess] = []
        self.barriers: dict[int, PathState] = {}
        self.exits: list[tuple[int, Formula]] = []
        self._rounds: list[Formula] = []
        self._paths: dict[int, Formula] = {}
        self._quiet = 0

    def walk(self, root: int, state: PathState) -> None:
        """Go from a node to the end. `accesses`, `barriers` and `exits` are what was met."""
        self._run(set(self._view.order), None, root, state)

    # -- nodes -------------------------------------------------------------------------------------------------------------

    def _run(self, region: Collection[int], head: int | None, entry: int, first: PathState) -> Left:
        """Go through some nodes. Returns the states in which a thread leaves them, or comes back to the head."""
        incoming, done, outs = defaultdict[int, list[PathState]](list, {entry: [first]}), set[int](), Left()
        for node in self._view.order:
            if node not in region or node in done or node not in incoming:
                continue
            state = self._joined(node, incoming.pop(node))
            if node in self._view.loops and node != head:
                done |= self._view.loops[node]
                left = self._loop(node, state)
            else:
                left = self._node(node, state)
            for target, after in left:
                if target in region and target != head:
                    incoming[target].append(after)
                else:
                    outs.append((target, after))
        return outs

    def _node(self, number: int, state: PathState) -> Left:
        """Go through a node."""
        self._paths[number] = state.path
        node, registers = self._kernel.graph.nodes[number], dict(state.registers)
        for place, step in enumerate(node.steps):
            found = self.steps.execute(step, state.path, registers)
            if not self._quiet:
                self.accesses += (replace(each, place=(number, place), rounds=tuple(self._rounds)) for each in found)
        if number in self._kernel.barriers and not self._quiet:
            self.barriers[number] = PathState(state.path, registers)
        condition = self.steps.condition(node.guard, registers)
        if node.may_leave and not self._quiet:
            self.exits.append((number, both(state.path, condition)))
        taken = [(target, PathState(both(state.path, condition), registers)) for target in node.taken]
        if node.falls is not None:
            falls = state.path if node.guard is None else both(state.path, opposite(condition))
            taken.append((node.falls, PathState(falls, registers)))
        onward = self._view.edges[number]
        return [(target, after) for target, after in taken if target in onward and not z3.is_false(after.path)]

    def _joined(self, node: int, states: list[PathState]) -> PathState:
        """Some states as one."""
        if len(states) == 1:
            return states[0]
        registers = {}
        for key in self._kernel.live[node]:
            values = [state.registers.get(key) for state in states]
            joined = values[-1]
            for state, value in zip(states[-2::-1], values[-2::-1], strict=True):
                joined = self._choice(state.path, value, joined)
            if joined is not None:
                registers[key] = joined
        return PathState(self._path(node, states), registers)

    def _path(self, node: int, states: list[PathState]) -> Formula:
        """The condition under which one of some states holds: that of the node before them, if all of its paths come here."""
        nearest = self._view.before[node]
        passes = self._uniform.after.sets[nearest] >> node & 1
        if nearest in self._paths and passes and self._view.around(nearest) <= self._view.around(node):
            return self._paths[nearest]
        return either(*(state.path for state in states))

    def _choice(self, condition: Formula, one: Value, other: Value) -> Value:
        if one is None or other is None or isinstance(one, Number) != isinstance(other, Number):
            return None
        if not isinstance(one, Number):
            return choice(condition, one, other)
        return chosen(condition, one, other) if one.base == other.base else None

    # -- loops -------------------------------------------------------------------------------------------------------------

    def _loop(self, head: int, entry: PathState) -> Left:
        """Go through a loop. Returns the states in which a thread leaves it."""
        body = self._view.loops[head]
        steps = (step.instruction for node in body for step in self._kernel.graph.nodes[node].steps)
        changed = sorted({key for each in steps for key in written(each)} & self._kernel.live[head] & self._kernel.needed)
        guesses = Guesses(self, head, entry, changed)
        self._quiet += 1
        growth = guesses.growth()
        self._quiet -= 1
        mark = self.symbols.mark
        shared = self._shares and self._uniform.is_uniform(head)
        count = self.symbols.fresh("u" if shared else "t", "iteration", (0, MOST), (0, SMALL))
        registers = dict(entry.registers)
        for key in changed:
            uniform = shared and key not in self._uniform.divergent_keys
            step = growth.get(key)
            if step is not None:
                registers[key] = plus(entry.registers[key], times(count, step))
            elif key in guesses.cycles:
                registers[key] = guesses.cycles[key].at(count, self.symbols)
            else:
                registers[key] = guesses.any(key, "u" if uniform else "t")
        self._rounds.append(count.term)
        outs = self._run(body, head, head, PathState(entry.path, registers))
        self._rounds.pop()
        again = either(*(state.path for target, state in outs if target == head))
        self._repeats(count, again, mark)
        return [(target, state) for target, state in outs if target != head]

    def _repeats(self, count: Number, again: Formula, mark: int) -> None:
        """Say that each iteration but the first one follows the condition of the one before."""
        symbols, own = self.symbols, str(count.term)
        names = [name for name in symbols.closure([again]) if symbols.order[name] >= mark and name != own]
        exchanged = [(count.term, count.term - 1)]
        for name in names:
            old = symbols.variables[name]
            exchanged.append((old, symbols.variable(name[0], "before", boolean=z3.is_bool(old))))
        for (_, new), name in zip(exchanged[1:], names, strict=True):
            facts = (z3.substitute(fact, *exchanged) for fact in symbols.facts[name])
            symbols.facts[str(new)] += [either(count.term == 0, fact) for fact in facts]  # the first iteration has none before it
            if name in symbols.assumed:
                symbols.assumed[str(new)] = symbols.assumed[name]
        symbols.facts[own].append(either(count.term == 0, z3.substitute(again, *exchanged)))

    def body_once(self, head: int, state: PathState) -> dict[Key, Value]:
        """The registers after one iteration."""
        outs = self._run(self._view.loops[head], head, head, state)
        back = [after for target, after in outs if target == head]
        return self._joined(head, back).registers if back else {}


class Guesses:
    """The registers of a loop at the begin of an iteration."""

    def __init__(self, walker: Walker, head: int, entry: PathState, changed: list[Key]) -> None:
        self._walker, self._head, self._entry, self._changed = walker, head, entry, changed
        self._symbols = walker.symbols
        self._bases = {key: value.base for key in changed if isinstance(value := entry.registers.get(key), Number)}
        self._ranges: dict[Key, Interval] = {}
        self.cycles: dict[Key, Cycle] = {}

    def any(self, key: Key, kind: str) -> Value:
        """Any value that a register may have at the begin of an iteration."""
        width = self._walker.steps.width(key)
        if width == 1:
            return self._symbols.variable(kind, "flag", boolean=True)
        interval = self._ranges.get(key, limits(width, signed=True))
        return self._symbols.fresh(kind, "loop", interval).on(self._bases.get(key))

    def growth(self) -> dict[Key, Number]:
        """The growth in an iteration of the registers that grow evenly. Facts about the other registers are kept for `any`."""
        while True:
            mark = self._symbols.mark
            first, after = self._once()
            lost = [key for key, base in self._bases.items() if base is not None and getattr(after.get(key), "base", None) != base]
            if not lost:
                break
            self._bases.update(dict.fromkeys(lost))
        found = {key: step for key in self._changed if (step := self._step(first[key], after.get(key), mark, key)) is not None}
        for key in self._changed:
            before, entry = first[key], self._entry.registers.get(key)
            if key not in found and isinstance(before, Number) and isinstance(entry, Number):
                cycle = cycle_of(before, after.get(key), entry, self._symbols)
                self.cycles |= {} if cycle is None else {key: cycle}
        self._narrow({*found, *self.cycles})
        return found

    def _once(self) -> tuple[dict[Key, Value], dict[Key, Value]]:
        first = {key: self.any(key, "t") for key in self._changed}
        return first, self._walker.body_once(self._head, PathState(self._entry.path, {**self._entry.registers, **first}))

    def _step(self, before: Value, after: Value, mark: int, key: Key) -> Number | None:
        entry = self._entry.registers.get(key)
        if not isinstance(before, Number) or not isinstance(after, Number) or not isinstance(entry, Number):
            return None
        if not before.base == after.base == entry.base:
            return None
        step = z3.simplify(after.term - before.term)
        if self._symbols.since(mark, self._symbols.free(step)):
            return None
        return Number(step, *self._symbols.intervals(step))

    def _narrow(self, grown: Collection[Key]) -> None:
        """Keep the interval that other registers begin in, and zero, if an iteration does not leave it."""
        values = {key: self._entry.registers.get(key) for key in self._changed if key not in grown}
        tried = {key: hull(value.range, (0, 0)) for key, value in values.items() if isinstance(value, Number) and value.base is None}
        while tried:
            self._ranges = dict(tried)
            after = self._once()[1]
            kept = {key: each for key, each in tried.items() if isinstance(value := after.get(key), Number) and within(value.range, each)}
            if len(kept) == len(tried):
                return
            tried = kept
        self._ranges = {}


@dataclass(frozen=True)
class Cycle:
    """A register that begins with `first`, and is then one more modulo `size` than before."""

    first: int
    size: int

    def at(self, count: Number, symbols: Symbols) -> Number:
        """Its value at the begin of an iteration."""
        found = symbols.remainder(plus(count, number(self.first)), self.size)
        return found if 0 <= self.first < self.size else chosen(count.term == 0, number(self.first), found)

    def term(self, count: Formula) -> Formula:
        """The same as a term."""
        return choice(count == 0, z3.IntVal(self.first), (count + self.first) % self.size)


def cycle_of(before: Number, after: Any, entry: Number, symbols: Symbols) -> Cycle | None:
    """How a register goes round, from its value before any iteration, behind it, and before the first one; None: it does not."""
    first = entry.constant
    if first is None or not isinstance(after, Number) or after.base is not None or not z3.is_const(before.term):
        return None
    names = symbols.closure([after.term])
    if str(before.term) not in names or any(name in symbols.assumed for name in names):
        return None
    known = [fact for name in names if name != str(before.term) for fact in symbols.facts[name]]
    count = z3.Int("count")
    for size in sorted(set(_sizes(after.term))):
        cycle = Cycle(first, size)
        asked = [z3.substitute(each, (before.term, cycle.term(count))) for each in (*known, after.term != cycle.term(count + 1))]
        if ask([count >= 0, *asked], _SECONDS) is False:
            return cycle
    return None


def _sizes(term: Formula) -> Iterator[int]:
    """The numbers in a term that may be the size of a cycle, or one less."""
    pending = [term]
    while pending:
        each = pending.pop()
        pending += each.children()
        if z3.is_int_value(each):
            yield from (size for size in (each.as_long(), each.as_long() + 1) if 2 <= size <= _MOST_STAGES)
