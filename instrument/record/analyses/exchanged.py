"""Values that the lanes of a warp have made equal: each took that of another lane and combined it with its own, until all had the same.

Compilers let all lanes store such a sum. Whether two lanes store the same is then no matter of data.

Let a value be equal in lanes i and i ^ g for each g of a group. Where each lane combines its own with that of lane i ^ m by an operation
whose operands may be exchanged, the result is equal for m, too. Five steps with 16, 8, 4, 2, 1 join all lanes. All steps and the store must
stand on one way without branches that no path leads back to, in a kernel whose warps are whole: so all lanes execute each of them once (ISA
"shfl.sync": a value that comes from no lane is undefined). A sum of products is no such value (between/lane_sums.py).
"""

from __future__ import annotations

import bisect
import math

from consan.dataclass import dataclass
from consan.instrument.control_flow import Graph, Key, graph_of, key_of, written
from consan.instrument.isa import computes, is_move, row_of, shuffles, sums_reals, takes_either_order
from consan.instrument.ptx import Function, Immediate, Instruction, Operand, Register

_LANES = 32
_ALL_LANES, _NOBODY = (1 << _LANES) - 1, 1  # a bit for each g: 0 is in every group
_CLAMP, _PAIRS = 31, "bfly"
_OF_CTA = frozenset({"%ctaid", "%nctaid", "%ntid", "%clusterid", "%nclusterid"})


@dataclass(frozen=True)
class ExchangedValues:
    """Those of a function."""

    function: Function

    def is_same(self, store: Instruction, value: Operand | None) -> bool:
        """Whether all lanes of a warp that execute a store give it the same value."""
        node = self._places.get(store.start)
        if node is None or not isinstance(value, Register) or self._graph.repeats(node):
            return False
        ways = self.function.once(_ways)
        if node not in ways:
            ways[node] = _Way(_before(self._graph, node))
        return ways[node].group(ways[node].places[store.start], store, value) == _ALL_LANES

    @property
    def _graph(self) -> Graph:
        return graph_of(self.function)

    @property
    def _places(self) -> dict[int, int]:
        return self.function.once(_places)


def _places(function: Function) -> dict[int, int]:
    """The node of each instruction, by its start. None where warps may lack lanes, or a thread may execute the function twice."""
    extents = function.directives.get("reqntid")
    if function.kind != "entry" or not isinstance(extents, tuple) or math.prod(extents) % _LANES:
        return {}
    return {step.instruction.start: number for number, node in enumerate(graph_of(function).nodes) for step in node.steps}


def _ways(_function: Function) -> dict[int, _Way]:
    """The ways to nodes, as they are needed."""
    return {}


def _before(graph: Graph, node: int) -> list[Instruction]:
    """The steps of a node, and of the nodes on the one way to it: labels for debuggers are no places where ways meet."""
    way = [node]
    while len(before := set(graph.predecessors[way[-1]])) == 1 and len(set(graph.successors[min(before)])) == 1:
        way.append(min(before))
    return [step.instruction for each in reversed(way) for step in graph.nodes[each].steps]


class _Way:
    """The steps to a node, looked at once and in their order: what each gives follows from what earlier ones have given.

    `_group`: of each step, the g for which its result is equal in lanes i and i ^ g. `_rounded`: whether that is a sum or a loaded
    value. An assembler may join a product and the sum behind it, and each lane rounds another way.
    """

    def __init__(self, steps: list[Instruction]) -> None:
        self.steps, self._group, self._rounded = steps, list[int](), list[bool]()
        self._writers: dict[Key, list[int]] = {}
        self.places = {each.start: at for at, each in enumerate(steps)}
        for at, made in enumerate(steps):
            self._group.append(self._made(at, made))
            self._rounded.append(
                sums_reals(made) or row_of(made).is_load or (is_move(made) and self._is_rounded(at, made, made.operands[1]))
            )
            for key in written(made):
                self._writers.setdefault(key, []).append(at)

    def group(self, at: int, user: Instruction, operand: Operand | None) -> int:
        """The g for which an operand of a step is equal in lanes i and i ^ g."""
        if isinstance(operand, Immediate):
            return _ALL_LANES
        if not isinstance(operand, Register):
            return _NOBODY
        if not user.scope.is_register(operand.name):
            return _ALL_LANES if operand.name.partition(".")[0] in _OF_CTA else _NOBODY
        writer = self._writer(at, user, operand)
        return _NOBODY if writer is None else self._group[writer]

    def _made(self, at: int, made: Instruction) -> int:
        """The group of the result of a step."""
        if _distance(made) is not None:
            return self.group(at, made, made.operands[1])
        if not computes(made) or len(made.operands) < 2:
            return _NOBODY
        found = self._joined(at, made)
        if found is None:
            found = _ALL_LANES
            for each in made.operands[1:]:
                found &= self.group(at, made, each)
        return found

    def _joined(self, at: int, made: Instruction) -> int | None:
        """The group of a step that combines a value with the one of another lane. None: it is no such step."""
        if not takes_either_order(made) or len(made.operands) != 3:
            return None
        for own, other in (made.operands[1:], made.operands[:0:-1]):
            if not (isinstance(own, Register) and isinstance(other, Register)):
                return None
            taken = self._writer(at, made, other)
            distance = None if taken is None else _distance(self.steps[taken])
            if taken is None or distance is None or not isinstance(source := self.steps[taken].operands[1], Register):
                continue
            if sums_reals(made) and not self._is_rounded(taken, self.steps[taken], source):
                return None
            key = key_of(made.scope, own.name)
            unchanged = (self._last(at, key) or 0) <= taken and key not in written(self.steps[taken])
            if unchanged and made.scope.is_register(own.name) and key_of(self.steps[taken].scope, source.name) == key:
                return self._group[taken] | _moved(self._group[taken], distance)
        return None

    def _is_rounded(self, at: int, user: Instruction, operand: Operand | None) -> bool:
        writer = self._writer(at, user, operand) if isinstance(operand, Register) else None
        return writer is not None and self._rounded[writer]

    def _writer(self, at: int, user: Instruction, operand: Register) -> int | None:
        """The step that has given a register its value: the last one that writes it, if it always does."""
        last = self._last(at, key_of(user.scope, operand.name))
        return None if last is None or self.steps[last].predicate is not None else last

    def _last(self, at: int, key: Key) -> int | None:
        """The last step before another one that writes a register."""
        writers = self._writers.get(key, [])
        number = bisect.bisect_left(writers, at)
        return writers[number - 1] if number else None


def _distance(instruction: Instruction) -> int | None:
    """The m of a shuffle by which each lane of a whole warp takes the value of lane i ^ m."""
    if shuffles(instruction) != _PAIRS or instruction.predicate is not None:
        return None
    numbers = [int(each.value) if isinstance(each, Immediate) and each.kind == "int" else None for each in instruction.operands[2:5]]
    distance, clamp, mask = numbers
    if distance is None or clamp != _CLAMP or mask is None or mask & _ALL_LANES != _ALL_LANES:
        return None
    return distance % _LANES


def _moved(group: int, distance: int) -> int:
    """The group with each of its g ^ distance."""
    return sum(1 << (each ^ distance) for each in range(_LANES) if group >> each & 1)
