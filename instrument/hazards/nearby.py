"""The `wgmma.fence` or `wgmma.wait_group` near a register hazard (`registers.py`) that does not prevent it: the third event of the report.

- "late": the wait that would cover (1) comes only after (2). It is the next one on every path from (2).
- "short": the wait before (2) leaves (1) in flight. It is the last one on every path to (2), and comes after (1).
- "fence": the fence below which the compiler has moved a write.

Nothing is named where paths differ, and a guarded instruction is never named.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from consan.instrument.control_flow import Graph, graph_of
from consan.instrument.hazards.wgmma_state import RegisterHazard
from consan.instrument.isa import has_action, row_of
from consan.instrument.ptx import Function, Immediate, Instruction

LATE, SHORT, FENCE = "late", "short", "fence"
_GROUPS: Final = ("commit_group", "wait_group")
_UNKNOWN: Final = 1 << 30  # more groups than any kernel leaves in flight


def third_event(function: Function, hazard: RegisterHazard, instructions: dict[int, Instruction]) -> tuple[str, Instruction] | None:
    """The instruction and its part in the hazard; None if there is no such instruction."""
    first, second = instructions[hazard.first], instructions[hazard.second]
    graph = graph_of(function)
    if hazard.reason == "written-after-fence":
        fence = _only(_nearest(graph, first, first, ("fence",), back=True))
        return (FENCE, fence) if fence is not None else None
    if hazard.reason != "touched-before-wait":
        return None
    before, after = (_only(_nearest(graph, second, first, _GROUPS, back=back)) for back in (True, False))
    if before is not None and _is_wait(before) and _pending(before) > hazard.leave:
        return SHORT, before
    if after is not None and _is_wait(after) and _pending(after) <= hazard.leave:
        return LATE, after
    return None


def _is_wait(instruction: Instruction) -> bool:
    return row_of(instruction).awaits_products


def _pending(wait: Instruction) -> int:
    """The number of groups that a wait_group leaves in flight."""
    operand = wait.operands[0]
    return int(operand.value) if isinstance(operand, Immediate) else _UNKNOWN


def _only(found: set[Instruction | None]) -> Instruction | None:
    """The instruction that was found on every path; None if the paths differ, or if it is guarded."""
    only = found.pop() if len(found) == 1 else None
    return only if only is not None and only.predicate is None else None


def _nearest(graph: Graph, start: Instruction, first: Instruction, actions: tuple[str, ...], *, back: bool) -> set[Instruction | None]:
    """The nearest wgmma instructions of these actions on the paths from `start`. None: the end of the kernel, or (1) on the way back."""
    found, seen = set[Instruction | None](), set[int]()
    pending = [(node, steps) for node, steps in _after(graph, start, back=back)]
    while pending:
        node, steps = pending.pop()
        met = next((each for each in steps if has_action(each, "wgmma", *actions) or (back and each is first)), None)
        if met is not None:
            found.add(None if met is first else met)
            continue
        onward = graph.predecessors[node] if back else graph.successors[node]
        found |= set() if back or onward else {None}
        pending += [(each, _steps(graph, each, back=back)) for each in onward if each not in seen]
        seen.update(onward)
    return found


def _after(graph: Graph, start: Instruction, *, back: bool) -> Iterator[tuple[int, list[Instruction]]]:
    """The node of an instruction with its other instructions in the direction."""
    for number in range(len(graph.nodes)):
        steps = _steps(graph, number, back=back)
        place = next((index for index, each in enumerate(steps) if each is start), None)
        if place is not None:
            yield number, steps[place + 1 :]


def _steps(graph: Graph, node: int, *, back: bool) -> list[Instruction]:
    steps = [step.instruction for step in graph.nodes[node].steps]
    return steps[::-1] if back else steps
