"""Proves that no two threads of any launch of a kernel race in shared or global memory, or says why not.

Accesses of two CTAs are compared with no order between them. Those of one CTA are compared where both threads are between the same two
executions of a barrier of all threads: each barrier is reached by all of them equally often, or there is no proof.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from consan.instrument.control_flow import Graph
from consan.instrument.ptx import Function, Module
from consan.prove.environment import Environment, Shape, has_one_value
from consan.prove.kernel import Kernel, Unproven, kernel_of
from consan.prove.numbers import Symbols
from consan.prove.pairs import Pair, Questions
from consan.prove.solver import Formula, z3
from consan.prove.step import Access, Steps
from consan.prove.uniform import Uniformity
from consan.prove.view import View
from consan.prove.walk import State, Walker

PROVEN: Final = "proven"
COUNTEREXAMPLE: Final = "counterexample"
UNKNOWN: Final = "unknown"
MEET: Final = "two threads may access the same bytes"
NOWHERE: Final = "an address is no sum of a parameter or a variable, and a number"
MOST_PAIRS: Final = 20_000
MOST_SECONDS: Final = 10.0  # of one question


@dataclass(frozen=True)
class Reason:
    """Why there is no proof, and the lines of the PTX that it is about."""

    why: str
    lines: tuple[int, ...] = ()


@dataclass
class Proof:
    """The answer for one kernel. `overflows`: lines of the PTX whose results are assumed not to overflow. `meetings`: pairs that may race."""

    answer: str
    reasons: list[Reason] = field(default_factory=list)
    overflows: list[int] = field(default_factory=list)
    pairs: int = 0
    meetings: list[Meeting] = field(default_factory=list)
    environment: Environment | None = None


@dataclass(frozen=True)
class Meeting:
    """Two accesses that may meet, and how to ask for the values with which they do."""

    pair: Pair
    questions: Questions
    environment: Environment


Assumption = Callable[[Environment], Formula]


def prove(
    function: Function, module: Module, block: Shape, pointers: Collection[int], assumed: Sequence[Assumption], seconds: float
) -> Proof:
    """The answer for a kernel with blocks of one shape, within about so many seconds."""
    symbols, ends = Symbols(), time.monotonic() + seconds
    try:
        kernel = kernel_of(function, block[0] * block[1] * block[2])
        environment = Environment(function, module, block, pointers, symbols)
        phases = _phases(kernel, function, environment, ends)
        questions = Questions(environment, [each(environment) for each in assumed])
        found = Decision(questions, environment, ends).decide(list(_pairs(phases, environment)))
        found.environment = environment
        return found
    except Unproven as why:
        return Proof(UNKNOWN, [Reason(str(why), (why.line,) if why.line else ())])


@dataclass
class Phases:
    """The accesses of a launch: of all of a thread's life, and of the times between barriers."""

    whole: list[Access]
    between: list[list[Access]]


def _phases(kernel: Kernel, function: Function, environment: Environment, ends: float) -> Phases:
    graph = kernel.graph
    uniform, lines = Uniformity(graph, has_one_value), [_line(graph, number) for number in range(len(graph.nodes))]
    for number in sorted(kernel.barriers):
        if not uniform.is_uniform(number):
            line = graph.nodes[number].steps[-1].instruction.line
            raise Unproven("whether all threads of a CTA come to the barrier together follows from a value of each thread", line)
    steps, edges = Steps(kernel, function, environment), list(graph.successors)
    whole = Walker(kernel, uniform, steps, View(edges, 0, lines), shares=True)
    whole.walk(0, State(z3.BoolVal(True)))
    if not kernel.barriers:
        return Phases(whole.accesses, [whole.accesses])
    cut = [() if number in kernel.barriers else each for number, each in enumerate(edges)]
    between = []
    for number, state in (*whole.barriers.items(), (None, State(z3.BoolVal(True)))):
        if time.monotonic() > ends:
            raise Unproven("there was no time to follow the kernel")
        root = 0 if number is None else edges[number][0]
        walker = Walker(kernel, uniform, steps, View(cut, root, lines), shares=False)
        walker.walk(root, state)
        between.append(walker.accesses)
    return Phases(whole.accesses, between)


def _line(graph: Graph, number: int) -> int:
    steps = graph.nodes[number].steps
    return steps[0].instruction.line if steps else 0


def _pairs(phases: Phases, environment: Environment) -> Iterator[Pair]:
    """All pairs that race if they meet."""
    one_cta = all(each.range == (0, 0) for each in environment.cta)
    groups = [(accesses, True) for accesses in phases.between]
    outer = [each for each in phases.whole if each.base is None or each.base[0] != "shared"]
    groups += [] if one_cta else [(outer, False)]
    for accesses, inside in groups:
        for place, one in enumerate(accesses):
            for other in accesses[place:]:
                pair = Pair(one, other, inside)
                if pair.may_race():
                    yield pair
    stale = [each for each in phases.whole if each.own and not each.writes and each.base is not None and each.base[0] != "shared"]
    writes = [each for each in phases.whole if each.writes]
    for one in stale:  # a load that does not see writes of the kernel, behind any barrier
        yield from (Pair(one, other, True) for other in writes)


class Decision:
    """Decides the pairs of a kernel one by one."""

    def __init__(self, questions: Questions, environment: Environment, ends: float) -> None:
        self._questions, self._environment, self._ends = questions, environment, ends
        self._stays: dict[int, bool] = {}

    def decide(self, pairs: Sequence[Pair]) -> Proof:
        """The answer. Raises `Unproven`."""
        proof, used, reasons = Proof(PROVEN, pairs=len(pairs)), dict[int, Access](), dict[Reason, None]()
        if len(pairs) > MOST_PAIRS:
            raise Unproven(f"{len(pairs):,} pairs of accesses are too many")
        for pair in pairs:
            why = self.why(pair)
            if why is None:
                used |= {id(each): each for each in (pair.first, pair.second)}
                continue
            reasons[Reason(why, tuple(sorted({pair.first.line, pair.second.line})))] = None
            if why == MEET:
                proof.meetings.append(Meeting(pair, self._questions, self._environment))
        assumed = self._environment.symbols.assumed
        proof.overflows = sorted({assumed[name] for name in self._questions.variables(list(used.values())) if name in assumed})
        proof.reasons, proof.answer = list(reasons), UNKNOWN if reasons else PROVEN
        return proof

    def why(self, pair: Pair) -> str | None:
        """Why two threads may meet; None: they do not."""
        one, other = pair.first.base, pair.second.base
        if one is None or other is None:
            spaces = {pair.first.space, pair.second.space}
            return None if spaces == {"shared", "global"} else NOWHERE
        if one != other:
            return self._leaves(pair) if one[0] == other[0] == "shared" else None
        left = self._ends - time.monotonic()
        found = None if left <= 0 else self._questions.model(pair, min(MOST_SECONDS, left))
        return None if found is False else MEET if found is not None else "the time was over" if left <= 0 else "the solver gave up"

    def _leaves(self, pair: Pair) -> str | None:
        """Two variables in shared memory: accesses have to stay in theirs."""
        for each in (pair.first, pair.second):
            assert each.base is not None
            if id(each) not in self._stays:
                size = self._environment.bytes_of(each.base[1])
                self._stays[id(each)] = self._questions.stays(each, size, min(MOST_SECONDS, max(0.001, self._ends - time.monotonic())))
        return (
            None if self._stays[id(pair.first)] and self._stays[id(pair.second)] else "an address may leave its variable in shared memory"
        )
