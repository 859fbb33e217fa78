"""Values that the lanes of a warp have made equal: each took that of another lane and combined it with its own, until all had the same.

Compilers let all lanes store such a sum. Whether two lanes store the same is then no matter of data.

Let a value be equal in lanes i and i ^ g for each g of a group. Where each lane combines its own with that of lane i ^ m by an operation
whose operands may be exchanged, the result is equal for m, too. Five steps with 16, 8, 4, 2, 1 join all lanes. All steps and the store must
stand on one way without branches that no path leads back to, in a kernel whose warps are whole: so all lanes execute each of them once (ISA
"shfl.sync": a value that comes from no lane is undefined). A sum of products is no such value (between/lane_sums.py).
"""

from __future__ import annotations

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
        steps = _before(self._graph, node)
        at = next(at for at, each in enumerate(steps) if each.start == store.start)
        return _equal(steps, at, store, value) == _ALL_LANES

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


def _before(graph: Graph, node: int) -> list[Instruction]:
    """The steps of a node, and of the nodes on the one way to it: labels for debuggers are no places where ways meet."""
    way = [node]
    while len(before := set(graph.predecessors[way[-1]])) == 1 and len(set(graph.successors[min(before)])) == 1:
        way.append(min(before))
    return [step.instruction for each in reversed(way) for step in graph.nodes[each].steps]


def _equal(steps: list[Instruction], before: int, user: Instruction, operand: Operand | None) -> int:
    """The g for which an operand is equal in lanes i and i ^ g, where so many steps of its block are behind."""
    if isinstance(operand, Immediate):
        return _ALL_LANES
    if not isinstance(operand, Register):
        return _NOBODY
    if not user.scope.is_register(operand.name):
        return _ALL_LANES if operand.name.partition(".")[0] in _OF_CTA else _NOBODY
    at = _last(steps, before, key_of(user.scope, operand.name))
    if at is None:
        return _NOBODY
    made = steps[at]
    if _distance(made) is not None:
        return _equal(steps, at, made, made.operands[1])
    if not computes(made) or len(made.operands) < 2:
        return _NOBODY
    found = _joined(steps, at)
    if found is None:
        found = _ALL_LANES
        for each in made.operands[1:]:
            found &= _equal(steps, at, made, each)
    return found


def _last(steps: list[Instruction], before: int, key: Key) -> int | None:
    """The step that has given a register its value: the last one that writes it, if it always does."""
    at = next((at for at in range(before - 1, -1, -1) if key in written(steps[at])), None)
    return None if at is None or steps[at].predicate is not None else at


def _distance(instruction: Instruction) -> int | None:
    """The m of a shuffle by which each lane of a whole warp takes the value of lane i ^ m."""
    if shuffles(instruction) != _PAIRS or instruction.predicate is not None:
        return None
    numbers = [int(each.value) if isinstance(each, Immediate) and each.kind == "int" else None for each in instruction.operands[2:5]]
    distance, clamp, mask = numbers
    if distance is None or clamp != _CLAMP or mask is None or mask & _ALL_LANES != _ALL_LANES:
        return None
    return distance % _LANES


def _joined(steps: list[Instruction], at: int) -> int | None:
    """The lanes with equal results of a step that combines a value with the one of another lane. None: it is no such step."""
    made = steps[at]
    if not takes_either_order(made) or len(made.operands) != 3:
        return None
    for own, other in (made.operands[1:], made.operands[:0:-1]):
        if not (isinstance(own, Register) and isinstance(other, Register)):
            return None
        taken = _last(steps, at, key_of(made.scope, other.name))
        distance = None if taken is None else _distance(steps[taken])
        if taken is None or distance is None or not isinstance(source := steps[taken].operands[1], Register):
            continue
        key = key_of(made.scope, own.name)
        unchanged = not any(key in written(each) for each in steps[taken:at])
        if sums_reals(made) and not _is_rounded(steps, taken, steps[taken], source):
            return None
        if unchanged and made.scope.is_register(own.name) and key_of(steps[taken].scope, source.name) == key:
            equal = _equal(steps, taken, steps[taken], source)
            return equal | _moved(equal, distance)
    return None


def _is_rounded(steps: list[Instruction], before: int, user: Instruction, value: Register) -> bool:
    """Whether a value is a sum or a loaded one. An assembler may join a product and the sum behind it, and each lane rounds another way."""
    at = _last(steps, before, key_of(user.scope, value.name))
    if at is None:
        return False
    made = steps[at]
    if is_move(made) and isinstance(moved := made.operands[1], Register):
        return _is_rounded(steps, at, made, moved)
    return sums_reals(made) or row_of(made).is_load


def _moved(group: int, distance: int) -> int:
    """The group with each of its g ^ distance."""
    return sum(1 << (each ^ distance) for each in range(_LANES) if group >> each & 1)
