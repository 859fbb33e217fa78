"""Polls of mbarriers that give up, and after which a thread goes on as if the phase were over (R-M14).

A loop polls if nothing in it but the wait touches memory or synchronises; fences may be there. It gives up if a branch that leaves it may
do so while the wait has returned false: its guard does not come from the result, or joins the result with something else so that this
alone ends the loop.
A loop within it that only the result ends is a wait, and the loop around it another work, such as one wait after the other.
Where all its exits lead to one place, and nothing behind the loop reads a register that the loop has written, what follows is the same
whether the phase is over or not. So the wait orders nothing, as one whose result is ignored. A loop that ends in a trap, or whose result
somebody looks at behind it, is none.

Not handled: exits whose blocks do something, guards of more than one conjunction, and results that are looked at without effect.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from consan.instrument.control_flow import BasicBlock, Graph, Key, definitions, graph_of, key_of, read, written
from consan.instrument.control_flow.paths import behind, natural_loops
from consan.instrument.control_flow.slices import forward_slice
from consan.instrument.isa import UNKNOWN, conjunction, lookup, row_of
from consan.instrument.ptx import Function, Instruction


def given_up(function: Function) -> list[Instruction]:
    """The waits of a function in loops that give up, in text order."""
    if function.body is None or not any(map(_is_wait, function.instructions())):
        return []
    graph, made = graph_of(function), definitions(function)
    found = ((number, step.instruction) for number, node in enumerate(graph.nodes) for step in node.steps if _is_wait(step.instruction))
    return [wait for number, wait in found if _gives_up(graph, number, wait, made)]


def _is_wait(instruction: Instruction) -> bool:
    return row_of(instruction).is_phase_wait


def _matters(instruction: Instruction) -> bool:
    """Whether an instruction may access memory or synchronise."""
    row = lookup(instruction.parts)
    return row is None or bool(row.touches) or row.synchronises or row.is_asynchronous or row.calls or row.is_of_tensor_memory


def _gives_up(graph: Graph, number: int, wait: Instruction, made: dict[Key, list[Instruction]]) -> bool:
    loop = _loop(graph, number, wait)
    exits = [(node, after) for node in loop for after in graph.nodes[node].successors if after not in loop]
    if not exits or len({_place(graph, after) for _, after in exits}) > 1 or _ends(graph.nodes[exits[0][1]]):
        return False
    if any(number in inner and inner < loop and not _may_end(graph, inner, wait, made) for inner in _within(graph, loop)):
        return False
    return not _read_behind(graph, loop, _instructions(graph, loop)) and _may_end(graph, loop, wait, made)


def _within(graph: Graph, loop: set[int]) -> Iterator[frozenset[int]]:
    """The loops whose heads are in a loop."""
    return (inner for head in loop for inner in natural_loops(graph.predecessors, head))


def _instructions(graph: Graph, loop: Iterable[int]) -> list[Instruction]:
    return [step.instruction for node in loop for step in graph.nodes[node].steps]


def _may_end(graph: Graph, loop: Collection[int], wait: Instruction, made: dict[Key, list[Instruction]]) -> bool:
    """Whether a loop may end although the wait has returned false."""
    inside = _instructions(graph, loop)
    exits = (node for node in loop if any(after not in loop for after in graph.nodes[node].successors))
    return any(_may_fail(graph.nodes[node], loop, wait, inside, made) for node in exits)


def _loop(graph: Graph, number: int, wait: Instruction) -> set[int]:
    """The nodes of the poll around a wait: those on ways back to it on which only it matters."""
    steps = [[step.instruction for step in node.steps] for node in graph.nodes]
    plain = {at for at, some in enumerate(steps) if all(each is wait or row_of(each).is_fence or not _matters(each) for each in some)}
    if number not in plain:
        return set()
    ahead, back = (behind(edges, (number,), plain) for edges in (graph.successors, graph.predecessors))
    return ahead & back


def _place(graph: Graph, number: int) -> int:
    """Where control comes from a node, behind those that only branch."""
    seen = set[int]()
    while number not in seen and len(after := graph.nodes[number].successors) == 1:
        if any(not row_of(step.instruction).branches for step in graph.nodes[number].steps):
            break
        seen.add(number)
        number = after[0]
    return number


def _ends(node: BasicBlock) -> bool:
    """Whether threads trap, exit or call a function there before anything else: they report a failure."""
    rows = (row_of(step.instruction) for step in node.steps if row_of(step.instruction).flow or _matters(step.instruction))
    first = next(rows, UNKNOWN)
    return bool(first.flow) and not first.branches


def _read_behind(graph: Graph, loop: set[int], inside: list[Instruction]) -> bool:
    """Whether something behind the loop, or before it, reads a register that it has written."""
    keys = {key for each in inside for key in written(each)}
    outside = (step.instruction for number, node in enumerate(graph.nodes) if number not in loop for step in node.steps)
    return any(not keys.isdisjoint(_sources(each)) for each in outside)


def _sources(instruction: Instruction) -> Iterator[Key]:
    yield from (key_of(instruction.scope, name) for name in read(instruction))
    if instruction.predicate is not None:
        yield key_of(instruction.scope, instruction.predicate.register)


def _may_fail(
    node: BasicBlock, loop: Collection[int], wait: Instruction, inside: list[Instruction], made: dict[Key, list[Instruction]]
) -> bool:
    """Whether the branch at the end of a node may leave the loop although the wait has returned false."""
    if node.guard is None:
        return False
    if node.guard.register not in _derived(wait, inside, any):
        return True
    makers = made.get(node.guard.register, [])
    stays = node.guard.value == any(each in loop for each in node.taken)  # it goes on in the loop while the guard is true
    if len(makers) != 1 or conjunction(makers[0]) is not stays:
        return False
    derived = _derived(wait, inside, all)
    return sum(key in derived for key in _sources(makers[0])) == 1


def _derived(wait: Instruction, inside: list[Instruction], how: Callable[[Iterable[bool]], bool]) -> set[Key]:
    """The registers that follow from the result of a wait, in the loop. `how`: also from more (`any`), or from it alone (`all`)."""
    return forward_slice(inside, written(wait), lambda each, found: bool(keys := set(_sources(each))) and how(key in found for key in keys))
