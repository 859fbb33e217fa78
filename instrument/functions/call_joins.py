"""Where a lane has come back from a device function: it has bypassed what other lanes may wait at in that call (ISA ".aligned", ".sync").

A thread may enter a function again, so no place in its text is past its points for good (points.py). But a call that is over is: the place
right behind it is a join, and the calls of a lane are counted. Only calls behind which there is work are joins: a point does not wait
for lanes that only exit from there on. Not seen: a function that some lanes do not call; calls by address, under a guard of their own, and
from two ways to one place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from consan.instrument.control_flow import Graph, graph_of
from consan.instrument.functions.analyse import callee
from consan.instrument.functions.points import Join, Point, find_points, leading_to_work, may_be_bypassed, shown_from, works
from consan.instrument.isa import row_of
from consan.instrument.rewriting.context import FunctionPlan

CALLED = 6  # the numbers of functions are above the bits of those of joins (points.MOST_JOINS); divergence.hpp has it too


def numbers_of(plans: Mapping[str, FunctionPlan]) -> dict[str, int]:
    """Numbers, from 1, of the device functions in which lanes may bypass a point."""
    found = (name for name, plan in plans.items() if not plan.is_entry and may_be_bypassed(plan.function))
    return {name: number for number, name in enumerate(found, start=1)}


def points_of(plan: FunctionPlan, numbers: Mapping[str, int]) -> tuple[list[Point], list[Join]]:
    """The points and joins of a function, with those behind calls."""
    points, joins = find_points(plan.function)
    number = numbers.get(plan.function.name, 0) << CALLED
    return [replace(point, join=point.join or number) for point in points], [*joins, *_joins_of_calls(plan, numbers)]


def _joins_of_calls(plan: FunctionPlan, numbers: Mapping[str, int]) -> Iterator[Join]:
    """The joins behind the calls of these functions."""
    if numbers.keys().isdisjoint(plan.stats.calls):
        return
    graph = graph_of(plan.function)
    working = leading_to_work(graph)
    for number, node in enumerate(graph.nodes):
        for index, step in enumerate(node.steps):
            function = numbers.get(callee(step.instruction) or "", 0) if row_of(step.instruction).calls else 0
            behind = node.steps[index + 1 :]
            work = any(works(other.instruction) for other in behind) or any(working[each] for each in node.successors)
            if function and step.guard is None and work and (place := _behind(graph, number, index)):
                steps = graph.nodes[place[0]].steps[place[1] :]
                yield Join(steps[0].instruction, False, shown_from(steps), called=function)


def _behind(graph: Graph, node: int, index: int) -> tuple[int, int] | None:
    """The place right behind a call, by node and step."""
    if index + 1 < len(graph.nodes[node].steps):
        return node, index + 1
    after = graph.nodes[node].successors
    only = len(after) == 1 and len(graph.predecessors[after[0]]) == 1
    return (after[0], 0) if only and graph.nodes[after[0]].steps else None
