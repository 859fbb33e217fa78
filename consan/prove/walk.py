"""One thread that stands for all of a launch goes through a kernel, or from one of its barriers to the next ones.

Paths are joined where they meet: the thread is at a node under a condition, with registers that are choices between terms. A loop is
walked once, for an iteration whose number is a variable. Its registers at the begin of that iteration are its first ones and as many
steps as there were iterations, where the loop adds a step that it does not change; all others may have any value. To come to an
iteration behind the first one, the condition that led back to the head must have held in the one before.

Some registers have another form that follows from the number of the iteration (loops/forms.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import field, replace
from typing import Final

from consan.dataclass import dataclass
from consan.instrument.control_flow import Key, written
from consan.instrument.isa import row_of
from consan.instrument.ptx import Instruction
from consan.prove.kernel import ProvedKernel
from consan.prove.loops.ends import last_iterations
from consan.prove.loops.forms import Cycle, Delayed, FormSearch, RegisterForm, cycle_of
from consan.prove.loops.view import View
from consan.prove.numbers import MOST, SMALL, Interval, Number, Symbols, chosen, grown, hull, limits, number, plus, within
from consan.prove.operations import Value
from consan.prove.solver import Formula, ask, both, choice, differing, either, opposite, z3
from consan.prove.step import SymbolicSteps, ThreadAccess
from consan.prove.uniform import Uniformity

_SECONDS: Final = 1.0
_BIT: Final = (0, 1)
_MOST_DELAYS: Final = 3  # iterations that a register is behind
Left = list[tuple[int, "PathState"]]


@dataclass
class PathState:
    """Where a thread is under a condition: its registers. `behind_loop`: whether it may have left a loop."""

    path: Formula
    registers: dict[Key, Value] = field(default_factory=dict)
    behind_loop: bool = False


class Walker:
    """Walks through one kernel. `shares`: what follows from uniform control is one value in all threads of a CTA."""

    def __init__(self, kernel: ProvedKernel, uniform: Uniformity, steps: SymbolicSteps, view: View, *, shares: bool) -> None:
        self._kernel, self._uniform, self.steps, self.view, self._shares = kernel, uniform, steps, view, shares
        self.symbols: Symbols = steps.symbols
        self.accesses: list[ThreadAccess] = []
        self.barriers: dict[int, PathState] = {}
        self.warp_barriers: dict[int, PathState] = {}
        self.exits: list[tuple[int, PathState]] = []
        self.guards: dict[int, Formula | None] = {}
        self._rounds: list[Formula] = []
        self._paths: dict[int, Formula] = {}

    def walk(self, root: int, state: PathState) -> None:
        """Go from a node to the end. `accesses`, `barriers`, `exits` and `guards`, the conditions of branches, are what was met."""
        self._run(set(self.view.order), None, root, state)

    # -- nodes -------------------------------------------------------------------------------------------------------------

    def _run(self, region: Collection[int], head: int | None, entry: int, first: PathState) -> Left:
        """Go through some nodes. Returns the states in which a thread leaves them, or comes back to the head."""
        incoming, done, outs = defaultdict[int, list[PathState]](list, {entry: [first]}), set[int](), Left()
        for node in self.view.order:
            if node not in region or node in done or node not in incoming:
                continue
            state = self._joined(node, incoming.pop(node))
            if node in self.view.loops and node != head:
                done |= self.view.loops[node]
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
        self.steps.repeats = not self._shares and bool(self.view.around(number))
        node, registers = self._kernel.graph.nodes[number], dict(state.registers)
        for place, step in enumerate(node.steps):
            found = self.steps.execute(step, state.path, registers)
            if not self.symbols.trials:
                self.accesses += (replace(each, place=(number, place), rounds=tuple(self._rounds)) for each in found)
        if number in self._kernel.barriers and not self.symbols.trials:
            self.barriers[number] = PathState(state.path, registers)
        if number in self._kernel.warp_barriers and not self.symbols.trials:
            self.warp_barriers[number] = PathState(state.path, registers)
        condition = self.steps.condition(node.guard, registers)
        if node.guard is not None and not self.symbols.trials:
            self.guards[number] = condition if self.guards.get(number, condition) is condition else None
        if node.may_leave and not self.symbols.trials:
            self.exits.append((number, PathState(both(state.path, condition), registers)))
        taken = [(target, PathState(both(state.path, condition), registers, state.behind_loop)) for target in node.taken]
        if node.falls is not None:
            falls = state.path if node.guard is None else both(state.path, opposite(condition))
            taken.append((node.falls, PathState(falls, registers, state.behind_loop)))
        onward = self.view.edges[number]
        return [(target, after) for target, after in taken if target in onward and not z3.is_false(after.path)]

    def _joined(self, node: int, states: list[PathState]) -> PathState:
        """Some states as one."""
        if len(states) == 1:
            return states[0]
        registers, paths = {}, differing([state.path for state in states])
        for key in sorted(self._kernel.live[node]):  # in one order: what the solver finds may depend on it
            values = [state.registers.get(key) for state in states]
            joined = values[-1]
            for path, value in zip(paths[-2::-1], values[-2::-1], strict=True):
                joined = self._choice(path, value, joined)
            if joined is not None:
                registers[key] = joined
        return PathState(self._path(node, states), registers, any(state.behind_loop for state in states))

    def _path(self, node: int, states: list[PathState]) -> Formula:
        """The condition under which one of some states holds: that of the node before them, if all of its paths come here.

        Behind a loop it is not shortened where there are counters, or strong loads: the condition that ended the loop says what a thread
        has waited for.
        """
        if (self.steps.counters.keys or self.steps.observes) and any(state.behind_loop for state in states):
            return either(*(state.path for state in states))
        nearest = self.view.before[node]
        passes = self._uniform.after.sets[nearest] >> node & 1
        if nearest in self._paths and passes and self.view.around(nearest) <= self.view.around(node):
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
        body, counters = self.view.loops[head], self.steps.counters
        steps = [step.instruction for node in body for step in self._kernel.graph.nodes[node].steps]
        written_here = {key for each in steps for key in (*written(each), *counters.of(each))}
        changed = sorted(written_here & self._kernel.live[head] & self._kernel.needed)
        if (wait := self._waits_only(body, steps)) is not None:
            return self._poll(head, entry, changed, wait)
        guesses = Guesses(self, head, entry, changed)
        self.symbols.trials += 1
        growth = guesses.growth()
        self.symbols.trials -= 1
        mark = self.symbols.mark
        shared = self._shares and self._uniform.is_uniform(head)
        count = self.symbols.fresh("u" if shared else "t", "iteration", (0, MOST), (0, SMALL))
        registers = dict(entry.registers)
        for key in changed:
            uniform = shared and key not in self._uniform.divergent_keys and key not in counters.keys
            step = growth.get(key)
            if step is not None:
                registers[key] = plus(entry.registers[key], grown(count, step))
            elif key in guesses.forms:
                registers[key] = guesses.forms[key].at(count, self.symbols)
            else:
                registers[key] = guesses.any(key, "u" if uniform else "t")
        self._rounds.append(count.term)
        outs = self._run(body, head, head, PathState(entry.path, registers))
        self._rounds.pop()
        again = either(*(state.path for target, state in outs if target == head))
        self._repeats(count, again, mark)
        self.symbols.facts[str(count.term)] += last_iterations(count.term, again, self.symbols, mark)
        return [(target, replace(state, behind_loop=True)) for target, state in outs if target != head]

    def _waits_only(self, body: Collection[int], steps: list[Instruction]) -> Instruction | None:
        """The wait for a phase that a loop does nothing but repeat."""
        waits = [each for each in steps if row_of(each).is_phase_wait]
        plain = all(row_of(each).is_arithmetic or row_of(each).branches for each in steps if each not in waits)
        return waits[0] if len(waits) == 1 and plain and sum(head in body for head in self.view.loops) == 1 else None

    def _poll(self, head: int, entry: PathState, changed: list[Key], wait: Instruction) -> Left:
        """Go through a loop that waits for a phase. It is counted if the thread leaves only when the phase is over."""
        first = {key: entry.registers[key] if key in self.steps.counters.keys else self._anything(key) for key in changed}
        outs = self._run(self.view.loops[head], head, head, PathState(entry.path, {**entry.registers, **first}, entry.behind_loop))
        left, (ended,) = [(target, state) for target, state in outs if target != head], written(wait)
        counter = self.steps.counters.waits.get(wait.start)
        if len(left) != 1 or ask([left[0][1].path, opposite(self.steps.predicate(ended, left[0][1].registers))], _SECONDS) is not False:
            return left
        target, state = left[0]
        if counter is not None:
            state.registers[counter] = plus(state.registers[counter], number(1))
        return [(target, PathState(entry.path, state.registers, entry.behind_loop))]

    def _anything(self, key: Key) -> Value:
        width = self.steps.width(key)
        return self.symbols.variable("t", "flag", boolean=True) if width == 1 else self.symbols.unknown("t", "loop", width)

    def _repeats(self, count: Number, again: Formula, mark: int) -> None:
        """Say that each iteration but the first one follows the condition of the one before."""
        symbols, own = self.symbols, str(count.term)
        names = [name for name in symbols.closure([again]) if symbols.order[name] >= mark and name != own]
        exchanged = symbols.of_iteration_before(names, count.term, count)
        symbols.facts[own].append(either(count.term == 0, z3.substitute(again, *exchanged)))

    def body_once(self, head: int, state: PathState) -> dict[Key, Value]:
        """The registers after one iteration."""
        outs = self._run(self.view.loops[head], head, head, state)
        back = [after for target, after in outs if target == head]
        return self._joined(head, back).registers if back else {}


class Guesses:
    """The registers of a loop at the begin of an iteration."""

    def __init__(self, walker: Walker, head: int, entry: PathState, changed: list[Key]) -> None:
        self._walker, self._head, self._entry, self._changed = walker, head, entry, changed
        self._symbols = walker.symbols
        self._bases = {key: value.base for key in changed if isinstance(value := entry.registers.get(key), Number)}
        self._ranges: dict[Key, Interval] = {}
        self.forms: dict[Key, RegisterForm] = {}

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
                self.forms |= {} if cycle is None else {key: cycle}
        self._narrow({*found, *self.forms})
        self._follow(found)
        return found

    def _follow(self, growth: Mapping[Key, Number]) -> None:
        """Find the forms of the registers that are left, where the others follow from the number of the iteration."""
        entry, symbols = self._entry.registers, self._symbols
        for _ in range(_MOST_DELAYS):
            mark = symbols.mark
            count = symbols.fresh("t", "iteration", (0, MOST), (0, SMALL))
            known = {key: plus(entry[key], grown(count, step)) for key, step in growth.items()}
            known |= {key: form.at(count, symbols) for key, form in self.forms.items()}
            left = {key: self.any(key, "t") for key in self._changed if key not in known}
            if not left:
                return
            after = self._walker.body_once(self._head, PathState(self._entry.path, {**entry, **known, **left}))
            found = dict(self._found(left, after, count, mark)) if known else {}
            found |= {
                key: each for key in left if key not in found and (each := self._delayed(key, after.get(key), count, mark)) is not None
            }
            self.forms |= found
            if not found:
                return

    def _found(self, left: Mapping[Key, Value], after: Mapping[Key, Value], count: Number, mark: int) -> Iterator[tuple[Key, RegisterForm]]:
        """The forms of registers whose first value is a number."""
        cycles = tuple(form for form in self.forms.values() if isinstance(form, Cycle))
        for key, before in left.items():
            first, value = (each.get(key) for each in (self._entry.registers, after))
            if not (isinstance(before, Number) and isinstance(first, Number) and isinstance(value, Number)):
                continue
            if first.constant is not None and value.base is None and z3.is_const(before.term):
                form = FormSearch(before, first.constant, count, cycles, self._symbols, mark).of(value.term, (self._entry.path,))
                if form is not None:
                    yield key, form

    def _delayed(self, key: Key, after: Value, count: Number, mark: int) -> Delayed | None:
        """The form of a register that is what the iteration before has computed from its number; None: it is not."""
        first = self._entry.registers.get(key)
        if isinstance(first, Number) and isinstance(after, Number):
            fits, term = first.base == after.base, after.term
        else:
            fits, term = not (first is None or after is None or isinstance(first, Number) or isinstance(after, Number)), after
        if not fits:
            return None
        names = self._symbols.since(mark, self._symbols.closure([term]))
        own = [name for name in names if name != str(count.term)]
        return Delayed(first, after, count.term, tuple(own)) if self._symbols.derived.issuperset(own) else None

    def _once(self) -> tuple[dict[Key, Value], dict[Key, Value]]:
        first = {key: self.any(key, "t") for key in self._changed}
        return first, self._walker.body_once(self._head, PathState(self._entry.path, {**self._entry.registers, **first}))

    def _step(self, before: Value, after: Value, mark: int, key: Key) -> Number | None:
        entry = self._entry.registers.get(key)
        if not isinstance(before, Number) or not isinstance(after, Number) or not isinstance(entry, Number):
            return None
        if not before.base == after.base == entry.base:
            return None
        step = _difference(after.term, before.term)
        if self._symbols.since(mark, self._symbols.free(step)):
            return None
        return Number(step, *self._symbols.intervals(step))

    def _narrow(self, grown: Collection[Key]) -> None:
        """Keep the interval that other registers begin in, and zero, or that of one bit, if an iteration does not leave it."""
        values = {key: self._entry.registers.get(key) for key in self._changed if key not in grown}
        tried = {key: hull(value.range, (0, 0)) for key, value in values.items() if isinstance(value, Number) and value.base is None}
        while tried:
            self._ranges = dict(tried)
            after = self._once()[1]
            kept = {key: each for key, each in tried.items() if isinstance(value := after.get(key), Number) and within(value.range, each)}
            if len(kept) == len(tried):
                return
            bits = {key: _BIT for key, each in tried.items() if key not in kept and each != _BIT and within(each, _BIT)}
            tried = kept | bits
        self._ranges = {}


def _difference(one: Formula, other: Formula) -> Formula:
    """The difference of two terms; where it is a choice, in each case."""
    if z3.is_app_of(one, z3.Z3_OP_ITE):
        condition, *cases = one.children()
        return choice(condition, *(_difference(case, other) for case in cases))
    return z3.simplify(one - other)
