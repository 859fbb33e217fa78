"""Paths through small graphs, against Warshall's algorithm."""

from __future__ import annotations

from graphs import ANY_TIME, DIAMOND, IRREDUCIBLE, LOOP, NAMED, NESTED, graphs, leads
from hypothesis import given, strategies as st

from consan.instrument.control_flow import paths

FEW = st.sets(st.integers(0, 7), max_size=3)


def test_inverse() -> None:
    assert paths.inverse(DIAMOND) == [[], [0], [0], [1, 2]]
    assert paths.inverse([(1, 1), ()]) == [[], [0, 0]]


@ANY_TIME
@given(graphs(), FEW, FEW)
def test_what_is_reached(edges: list[tuple[int, ...]], starts: set[int], without: set[int]) -> None:
    nodes, starts = set(range(len(edges))), starts & set(range(len(edges)))
    free = leads(edges, without)
    after = {other for node in starts for other in nodes if free[node][other]}
    assert paths.closure(edges, starts, without) == after
    assert paths.behind(edges, starts, without=without) == after - without
    assert paths.behind(edges, starts, nodes - without) == after - without
    others = {other for node in starts - without for other in nodes if free[node][other]}
    assert paths.reached(edges, starts, without=without) == (starts | others) - without
    assert paths.reached(edges, starts, nodes - without) == (starts | others) - without


@ANY_TIME
@given(graphs())
def test_cycles(edges: list[tuple[int, ...]]) -> None:
    leading, nodes = leads(edges), range(len(edges))
    assert [paths.repeats(edges.__getitem__, node) for node in nodes] == [leading[node][node] for node in nodes]
    assert paths.has_cycle(edges, nodes) == any(leading[node][node] for node in nodes)


@ANY_TIME
@given(graphs(), FEW)
def test_cycles_among_some_nodes(edges: list[tuple[int, ...]], within: set[int]) -> None:
    within &= set(range(len(edges)))
    inner = leads([tuple(each for each in targets if each in within) if node in within else () for node, targets in enumerate(edges)])
    assert paths.has_cycle(edges, within) == any(inner[node][node] for node in within)


@ANY_TIME
@given(graphs())
def test_components(edges: list[tuple[int, ...]]) -> None:
    leading, nodes = leads(edges), range(len(edges))
    found = paths.components(edges, paths.inverse(edges))
    for one in nodes:
        for other in nodes:
            assert (found[one] == found[other]) == (one == other or (leading[one][other] and leading[other][one]))


@ANY_TIME
@given(graphs(), FEW, FEW)
def test_postorder(edges: list[tuple[int, ...]], starts: set[int], blocked: set[int]) -> None:
    """A node comes after those that it leads to, unless they lead back to it; starts are visited in their order."""
    starts &= set(range(len(edges)))
    order = list(paths.postorder(edges, starts, blocked - starts))
    leading = leads(edges, blocked - starts)
    assert set(order) == starts | paths.closure(edges, starts, blocked - starts)
    assert len(order) == len(set(order))
    for node in set(order) - blocked:
        for other in edges[node]:
            assert order.index(other) < order.index(node) or leading[other][node] or other in starts


@ANY_TIME
@given(graphs(), FEW)
def test_each_cycle_has_the_target_of_a_retreating_edge(edges: list[tuple[int, ...]], starts: set[int]) -> None:
    starts &= set(range(len(edges)))
    leading, found = leads(edges), paths.retreating_targets(edges, starts)
    inside = paths.reached(edges, starts)
    assert all(leading[node][node] for node in found)
    assert found <= inside
    assert not paths.has_cycle(edges, inside - found)


@ANY_TIME
@given(graphs(), FEW, FEW)
def test_nodes_on_cycles(edges: list[tuple[int, ...]], starts: set[int], without: set[int]) -> None:
    nodes = range(len(edges))
    starts &= set(nodes)
    free = leads(edges, without)
    between = {node for start in starts for node in nodes if node not in without and free[start][node] and free[node][start]}
    own = {start for start in starts if start in edges[start] or any(free[start][n] and free[n][start] and n not in without for n in nodes)}
    assert paths.on_cycles(edges, paths.inverse(edges), starts, without) == between | own


def test_loops_by_name() -> None:
    assert paths.natural_loops(paths.inverse(LOOP), 1) == [{1, 2}]
    assert paths.natural_loops(paths.inverse(NESTED), 1) == [{1, 2, 3}]
    assert paths.natural_loops(paths.inverse(NESTED), 2) == [{2}]
    assert paths.natural_loops(paths.inverse(IRREDUCIBLE), 1) == [{0, 1, 2}], "with what comes in at the other entry"
    two_ways_back = [(1,), (2, 3), (1,), (1, 4), ()]
    assert paths.natural_loops(paths.inverse(two_ways_back), 1) == [{1, 2}, {1, 2, 3}]


@ANY_TIME
@given(graphs())
def test_a_loop_has_all_that_leads_back_to_its_head(edges: list[tuple[int, ...]]) -> None:
    for head in range(len(edges)):
        tails = [node for node in range(head, len(edges)) if head in edges[node]]
        found = paths.natural_loops([sorted(set(before)) for before in paths.inverse(edges)], head)
        free = leads(edges, {head})
        assert len(found) == len(tails)
        for count, body in enumerate(found, 1):
            some = [tail for tail in tails[:count] if tail != head]
            assert body == {head, *some} | {node for node in range(len(edges)) if any(free[node][tail] for tail in some)}


def test_named_graphs_are_what_their_names_say() -> None:
    leading = {name: leads(edges) for name, edges in NAMED.items()}
    assert {name for name, found in leading.items() if any(found[n][n] for n in range(len(found)))} == {
        *("loop", "nested loops", "irreducible", "endless")
    }
