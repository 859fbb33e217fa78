"""The accesses of a launch that are compared: those between two executions of a barrier, and copies with what comes until their wait.

All threads of a CTA come to the same barriers in the same order. So a copy that is issued between two of them may meet what another thread
does there, and in each later interval up to the one in which its own thread waits for it. Threads are followed through as many barriers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final

from consan.dataclass import dataclass
from consan.instrument.control_flow import Graph
from consan.instrument.control_flow.paths import behind
from consan.instrument.isa import row_of
from consan.instrument.ptx import Function, Instruction
from consan.prove.atomics.broadcasts import shared_loads
from consan.prove.atomics.fences import WordFences
from consan.prove.atomics.growing import Rounds
from consan.prove.atomics.order import WordOrder
from consan.prove.atomics.published import Published
from consan.prove.copies import CopyProgress, InFlight
from consan.prove.environment import Environment, has_one_value
from consan.prove.kernel import ProvedKernel, Unproven
from consan.prove.loads.read_only import read_only_loads
from consan.prove.loads.unused import StoredValues
from consan.prove.loops.arms import FIRST, at_one_time
from consan.prove.loops.leaving import last_nodes, staying
from consan.prove.loops.unrolled import united
from consan.prove.loops.view import View
from consan.prove.numbers import number
from consan.prove.pairs import CTA, INTERVAL, AccessPair, OverlapQuestions
from consan.prove.phases.arrays import MbarrierArray, arrays_of, counters_of, with_events
from consan.prove.phases.boxes import boxes_of
from consan.prove.phases.counters import is_tensor_load
from consan.prove.phases.model import PhaseModel, model_of
from consan.prove.phases.order import PhaseOrder
from consan.prove.phases.proxies import ProxyFences
from consan.prove.phases.warps import WarpOrder, is_plain, whole_branches
from consan.prove.solver import z3
from consan.prove.step import SymbolicSteps, ThreadAccess
from consan.prove.uniform import Uniformity
from consan.prove.walk import PathState, Walker

ENDS: Final = "a copy may be in flight when its thread ends"
_SEPARATE: Final = "whether all threads of a CTA come to the barrier together follows from a value of each thread"
MOST_BARRIERS: Final = 12  # that a copy is followed through
_SECONDS: Final = 2.0  # of one question


@dataclass
class Compared:
    """The accesses of all of a thread's life, the pairs of one CTA, and the copies that may be in flight when their thread ends."""

    whole: list[ThreadAccess]
    pairs: list[AccessPair] = field(default_factory=list)
    unfinished: list[ThreadAccess] = field(default_factory=list)


@dataclass
class _Interval:
    """A thread's steps from a barrier to the next ones, and the copies that may be in flight there."""

    walker: Walker
    progress: CopyProgress


class Intervals:
    """Goes through the intervals between barriers of one kernel."""

    def __init__(self, kernel: ProvedKernel, function: Function, environment: Environment, questions: OverlapQuestions) -> None:
        self._kernel, self._function, self._questions = kernel, function, questions
        self._stored = StoredValues({}, {})
        graph = kernel.graph
        self._edges = list(graph.successors)
        self._cut = [() if number in kernel.barriers else each for number, each in enumerate(self._edges)]
        self._lines = [_line(graph, number) for number in range(len(graph.nodes))]
        parameters, read_only = {each.name for each in function.params}, read_only_loads(function, environment) | shared_loads(function)
        self._uniform = Uniformity(graph, has_one_value, parameters, read_only)
        self._cut_finer = [() if number in kernel.warp_barriers else each for number, each in enumerate(self._cut)]
        self._steps = SymbolicSteps(kernel, function, environment)
        self._steps.uniform_loads = self._uniform.uniform_loads()
        self._views: dict[int, View] = {}
        self._behind: dict[int, set[int]] = {}
        self._order = PhaseOrder(PhaseModel(questions, environment.symbols), [])
        self._in_arms = False  # whether threads come to barriers at different instructions

    def compared(self) -> Compared:
        """The pairs to compare. Raises `Unproven`."""
        last = self._last_nodes()
        start, whole = self._whole()
        found = Compared(self._united(whole))
        found.pairs += (
            pair for one in found.whole if one.place[0] in last for other in found.whole for pair in _raced(AccessPair(one, other, CTA))
        )
        if self._in_arms:
            self._at_one_time({FIRST: start, **whole.barriers}, found)
            return found
        roots = [(0, start), *((self._edges[node][0], state) for node, state in whole.barriers.items())]
        fences = ProxyFences(self._kernel, self._cut, [root for root, _ in roots])
        for one in whole.accesses:
            for other in (each for each in whole.accesses if self._may_follow(one, each)):
                found.pairs += _of_proxies(one, other, fences)
        for root, state in roots:
            self._from(root, state, found)
        if self._warps.divide:
            roots += [(self._edges[node][0], state) for node, state in whole.warp_barriers.items()]
            for root, state in roots:
                self._within_warps(root, state, found)
        return found

    def _last_nodes(self) -> frozenset[int]:
        """The nodes behind a thread's last barrier, where others come to more of them; none if all leave together. Raises `Unproven`."""
        lines = self._separating(self._uniform)
        if not lines:
            return frozenset()
        graph = self._kernel.graph
        if any(map(_is_asynchronous, self._function.instructions())):
            raise Unproven(_SEPARATE, lines[0])
        self._steps.spread.clear()  # the first thread may have left
        stays = staying(graph, self._kernel.barriers)
        among = self._uniform.among(stays)
        self._in_arms = bool(self._separating(among))
        if self._in_arms:
            return frozenset()
        self._uniform = among
        return last_nodes(self._uniform, stays, graph, self._cut)

    def _may_follow(self, one: ThreadAccess, other: ThreadAccess) -> bool:
        """Whether barriers, or the order of a thread, may order an access behind another one. Phases of mbarriers may in any case."""
        if self._steps.counters.keys or one.place[0] == other.place[0]:
            return True
        node = other.place[0]
        if node not in self._behind:
            self._behind[node] = behind(self._edges, [node])
        return one.place[0] in self._behind[node]

    def _separating(self, uniform: Uniformity) -> list[int]:
        """The lines of the barriers that threads may not come to together."""
        nodes = self._kernel.graph.nodes
        return [nodes[each].steps[-1].instruction.line for each in sorted(self._kernel.barriers) if not uniform.is_uniform(each)]

    def _united(self, walker: Walker) -> list[ThreadAccess]:
        """The accesses that a walker has met. Those of a kernel with phases stay apart: a phase may lie between two of them."""
        return walker.accesses if self._steps.counters.keys else united(walker.accesses)

    def _whole(self) -> tuple[PathState, Walker]:
        """The whole life of a thread. Where there are mbarriers, it is walked once more with the counters of their phases."""
        start, view = PathState(z3.BoolVal(True)), View(self._edges, 0, self._lines)
        whole = Walker(self._kernel, self._uniform, self._steps, view, shares=True)
        whole.walk(0, start)
        tables = self._questions.tables
        arrays = arrays_of(whole.accesses, tables)
        if any(is_tensor_load(each.instruction) for each in whole.accesses):
            self._find_boxes(arrays, whole)
            whole = Walker(self._kernel, self._uniform, self._steps, view, shares=True)
            whole.walk(0, start)
        if arrays:
            self._steps.counters = counters_of(arrays, whole.accesses, tables).with_groups(self._function)
            self._kernel = self._kernel.counting(self._steps.counters.keys)
            start = PathState(z3.BoolVal(True), dict.fromkeys(self._steps.counters.keys, number(0)))
            whole = Walker(self._kernel, self._uniform, self._steps, view, shares=True)
            whole.walk(0, start)
            with_events(arrays, whole.accesses, tables)
            self._order = PhaseOrder(model_of(arrays, self._kernel.graph, whole.accesses, self._questions), whole.exits)
        published = Published(self._uniform, self._cut, view, self._steps.first, whole.barriers)
        rounds = Rounds(self._uniform, self._cut, view, self._steps.first, whole.barriers)
        words = WordOrder(whole.accesses, published, rounds, WordFences(self._kernel.graph), self._steps, self._questions)
        self._questions.unordered = lambda pair: [*self._order.unordered(pair), *words.unordered(pair)]
        of_warps = self._uniform.of_warps(whole_branches(whole.guards, tables))
        if self._in_arms and (lines := self._separating(of_warps)):
            raise Unproven(_SEPARATE, lines[0])
        self._questions.together = of_warps.is_uniform
        self._warps = WarpOrder(self._kernel.graph, self._cut, of_warps, tables.threads)
        self._warps.divide &= all(map(is_plain, whole.accesses))
        self._stored = StoredValues.of(self._function, whole.accesses, tables)
        whole.accesses = self._stored.used(whole.accesses)
        return start, whole

    def _find_boxes(self, arrays: Sequence[MbarrierArray], whole: Walker) -> None:
        """Find the bytes of tensor copies. Raises `Unproven`."""
        copies = {each.instruction.start: each.line for each in whole.accesses if is_tensor_load(each.instruction)}
        found = self._steps.boxes = boxes_of(arrays, whole.accesses, self._questions.tables, self._steps.symbols)
        if unknown := sorted(line for start, line in copies.items() if start not in found):
            raise Unproven("the bytes of a tensor copy do not follow from what its mbarrier expects", unknown[0])
        if written := sorted(each.line for each in whole.accesses if each.writes and self._may_be_of_map(each)):
            raise Unproven("memory that a tensor map describes may be written", written[0])
        premises = self._steps.symbols.shared.premises
        premises |= {
            f"the box of the tensor copy at line {copies[start]} of the PTX has {size} bytes": None for start, size in found.items()
        }
        premises["arrays that tensor maps describe do not overlap others"] = None

    def _may_be_of_map(self, access: ThreadAccess) -> bool:
        """Whether an address follows from a pointer inside a parameter, as a tensor map has one, or from no known one."""
        if access.base is None:
            return access.space != "shared"
        place = access.base[1].partition("+")[0]
        return access.base[0] == "param" and self._function.params[int(place)].size is not None

    def _from(self, root: int, state: PathState, found: Compared) -> None:
        """Compare what threads do behind a barrier."""
        here = self._interval(root, state, {}, issues=True)
        accesses, runs = here.walker.accesses, self._united(here.walker)
        for place, one in enumerate(runs):
            for other in runs[place:]:
                in_warps = self._warps.divide or self._warps.holds(here.walker.view, one, other, here.progress)
                found.pairs += _raced(AccessPair(one, other, INTERVAL, in_warps=in_warps))
        copies = [each for each in accesses if each.is_copy]
        for copy in copies:
            for other in accesses:
                if copy.flight in here.progress.before(other.place):
                    found.pairs += _raced(AccessPair(copy, other, INTERVAL, own=True))
        if copies:
            self._follow(here, copies, found, 0)

    def _at_one_time(self, states: Mapping[int, PathState], found: Compared) -> None:
        """Compare what threads do that come to barriers at different instructions. `states`: behind each barrier."""
        walkers = {
            node: self._walked(root, state, View(self._cut, root, self._lines))
            for node, state in states.items()
            for root in ([0] if node == FIRST else self._edges[node])
        }
        runs = {node: self._united(each) for node, each in walkers.items()}
        ends = {node for node, each in walkers.items() if each.exits}
        for node, its in sorted(at_one_time({node: each.barriers for node, each in walkers.items()}, ends)):
            for place, one in enumerate(runs[node]):
                for other in runs[its][place if node == its else 0 :]:
                    found.pairs += _raced(AccessPair(one, other, CTA))

    def _within_warps(self, root: int, state: PathState, found: Compared) -> None:
        """Compare what the threads of one warp do from a barrier of the CTA or the warp to the next ones. They pass all in one order."""
        walker = self._walked(root, state, View(self._cut_finer, root, self._lines))
        runs = self._united(walker)
        for place, one in enumerate(runs):
            for other in runs[place:]:
                found.pairs += _raced(AccessPair(one, other, INTERVAL, one_warp=True))

    def _follow(self, before: _Interval, copies: list[ThreadAccess], found: Compared, barriers: int) -> None:
        """Compare copies with what comes behind the barriers at the end of an interval while they are in flight."""
        flying = {number: before.progress.at_end(number) for number in before.walker.barriers}
        for node, state in before.walker.exits:
            unwaited = before.progress.at_end(node)
            found.unfinished += [
                each
                for each in copies
                if each.flight in unwaited
                and each.writes != each.is_bulk_store  # it does not matter when a bulk store writes, but shared memory ends with the CTA
                and self._is_in_flight(each, state)
                and not self._order.is_waited_for(each)
            ]
        for node, state in before.walker.barriers.items():
            left = [each for each in copies if each.flight in flying[node]]
            reached = [each for each in left if (each.writes or each.is_operand) and self._is_in_flight(each, state)]
            if reached and barriers == MOST_BARRIERS:
                raise Unproven(f"a copy may be in flight behind {barriers} barriers", reached[0].line)
            if reached:
                here = self._interval(self._edges[node][0], state, flying[node], issues=False)
                left = [each for each in left if each.place in {other.place for other in reached}]
                found.pairs += (pair for copy in left for pair in _later(copy, here))
                self._follow(here, left, found, barriers + 1)

    def _is_in_flight(self, copy: ThreadAccess, state: PathState) -> bool:
        """Whether a copy may be in flight where its thread is in a state."""
        return self._questions.follows(copy, state.path, _SECONDS, self._order.incomplete(copy, state))

    def _interval(self, root: int, state: PathState, first: InFlight, *, issues: bool) -> _Interval:
        view = self._views.get(root) or self._views.setdefault(root, View(self._cut, root, self._lines))
        walker = self._walked(root, state, view)
        return _Interval(walker, CopyProgress(self._kernel.graph, self._cut, root, first, issues=issues))

    def _walked(self, root: int, state: PathState, view: View) -> Walker:
        walker = Walker(self._kernel, self._uniform, self._steps, view, shares=False)
        walker.walk(root, state)
        walker.accesses = self._stored.used(walker.accesses)
        return walker


def _is_asynchronous(instruction: Instruction) -> bool:
    row = row_of(instruction)
    return row.is_copy or row.is_bulk or row.is_mbarrier or row.is_of_products


def _later(copy: ThreadAccess, behind: _Interval) -> Iterator[AccessPair]:
    """A copy with the accesses of a later interval."""
    for other in behind.walker.accesses:
        yield from _raced(AccessPair(copy, other, INTERVAL))
        if copy.flight in behind.progress.before(other.place):
            yield from _raced(AccessPair(copy, other, INTERVAL, own=True, later=True))


def _of_proxies(one: ThreadAccess, other: ThreadAccess, fences: ProxyFences) -> Iterator[AccessPair]:
    """A bulk copy and a write through the generic proxy, at any time; with a fence behind the write, only what comes before the fence."""
    if not one.late or not other.writes or other.late or other.is_of_mbarrier:
        return
    if not fences.follow(other):
        yield from _raced(AccessPair(one, other, CTA))
        yield from _raced(AccessPair(one, other, CTA, own=True))
    if not fences.are_between(other, one):
        yield from _raced(AccessPair(other, one, CTA, own=True))


def _raced(pair: AccessPair) -> list[AccessPair]:
    return [pair] if pair.may_race() else []


def _line(graph: Graph, number: int) -> int:
    steps = graph.nodes[number].steps
    return steps[0].instruction.line if steps else 0
