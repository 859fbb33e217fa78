"""Dominators, post-dominators and control dependence of small graphs, against their definitions."""

from __future__ import annotations

from graphs import ANY_TIME, DIAMOND, ENDLESS, IRREDUCIBLE, LOOP, NESTED, UNREACHABLE, graphs, leads
from hypothesis import given, strategies as st

from consan.instrument.control_flow import PostDominators, immediate_dominators
from consan.instrument.control_flow.paths import reached

Graph = list[tuple[int, ...]]


def _dominates(edges: Graph, root: int, one: int, other: int) -> bool:
    """By definition: without it no path leads there."""
    return one == other or other not in reached(edges, (root,), without={one})


@ANY_TIME
@given(graphs())
def test_immediate_dominators(edges: Graph) -> None:
    inside = reached(edges, (0,))
    found = immediate_dominators(edges, 0)
    assert found.keys() == inside
    assert found.pop(0) == 0
    for node, nearest in found.items():
        strict = {each for each in inside if each != node and _dominates(edges, 0, each, node)}
        assert nearest in strict
        assert all(_dominates(edges, 0, each, nearest) for each in strict)


def test_dominators_by_name() -> None:
    assert immediate_dominators(DIAMOND, 0) == {0: 0, 1: 0, 2: 0, 3: 0}
    assert immediate_dominators(LOOP, 0) == {0: 0, 1: 0, 2: 1, 3: 1}
    assert immediate_dominators(IRREDUCIBLE, 0) == {0: 0, 1: 0, 2: 0, 3: 2}
    assert immediate_dominators(UNREACHABLE, 0) == {0: 0, 2: 0}


LEAVING = st.sets(st.integers(0, 7), min_size=1, max_size=3)


@ANY_TIME
@given(graphs(), LEAVING)
def test_post_dominators(edges: Graph, leaving: set[int]) -> None:
    """The nodes without which no path leads to one where a thread leaves."""
    nodes = range(len(edges))
    leaving &= set(nodes)
    found = PostDominators(edges, leaving)
    for node in nodes:
        ends = bool(reached(edges, (node,)) & leaving)
        assert found.leads_to_end(node) == ends
        expected = {each for each in nodes if not (reached(edges, (node,), without={each}) & leaving)}
        assert {each for each in nodes if found.sets[node] >> each & 1} == expected
        strict = expected - {node}
        nearest = found.immediate[node]
        if not ends or not strict:
            assert nearest is None
        else:
            assert nearest in strict
            assert all(found.sets[nearest] >> each & 1 for each in strict)


@ANY_TIME
@given(graphs(), LEAVING)
def test_control_dependence(edges: Graph, leaving: set[int]) -> None:
    """For a branch: all paths by one edge pass the node, not all by the others. Edges from which no path leads to an end do not count."""
    nodes = range(len(edges))
    leaving &= set(nodes)
    found = PostDominators(edges, leaving)

    def always(start: int, node: int) -> bool:
        return found.leads_to_end(start) and bool(found.sets[start] >> node & 1)

    for branch in nodes:
        onward = {each for each in edges[branch] if found.leads_to_end(each)}
        ways = len(onward) + (branch in leaving)
        for node in nodes:
            by_one, by_all = any(always(each, node) for each in onward), node != branch and always(branch, node)
            assert (branch in found.control_dependence[node]) == (ways > 1 and by_one and not by_all)


def test_control_dependence_by_name() -> None:
    assert PostDominators(DIAMOND, [3]).control_dependence == [set(), {0}, {0}, set()]
    assert PostDominators(LOOP, [3]).control_dependence == [set(), {1}, {1}, set()]
    assert PostDominators(NESTED, [4]).control_dependence == [set(), {3}, {2, 3}, {3}, set()]
    assert PostDominators(IRREDUCIBLE, [3]).control_dependence == [set(), {0, 2}, {2}, set()]
    assert PostDominators(ENDLESS, [2]).immediate == [2, None, None], "a way that never ends does not count"
    early = PostDominators([(1,), (2,), ()], [0, 2])
    assert early.immediate == [None, 2, None], "a thread may leave in the first node"
    assert early.control_dependence == [set(), {0}, {0}]


def test_the_definition_of_the_tests_agrees_with_paths() -> None:
    assert leads(IRREDUCIBLE)[1][1]
    assert not _dominates(IRREDUCIBLE, 0, 1, 2)
    assert _dominates(IRREDUCIBLE, 0, 2, 3)
