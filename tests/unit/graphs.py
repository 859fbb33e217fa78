"""Small graphs for tests: a few by name, and any by hypothesis. A graph is the list of each node's successors."""

from __future__ import annotations

from collections.abc import Callable, Container

from hypothesis import settings, strategies as st

MOST = 8
ANY_TIME = settings(deadline=None)  # on a machine with other work
LINE = [(1,), (2,), ()]
DIAMOND = [(1, 2), (3,), (3,), ()]
LOOP = [(1,), (2, 3), (1,), ()]
NESTED = [(1,), (2,), (2, 3), (1, 4), ()]
IRREDUCIBLE = [(1, 2), (2,), (1, 3), ()]  # a loop of 1 and 2 with two entries
UNREACHABLE = [(2,), (2,), ()]
ENDLESS = [(1, 2), (1,), ()]
NAMED = {
    "line": LINE,
    "diamond": DIAMOND,
    "loop": LOOP,
    "nested loops": NESTED,
    "irreducible": IRREDUCIBLE,
    "unreachable": UNREACHABLE,
    "endless": ENDLESS,
}


@st.composite
def graphs(draw: Callable[..., list[tuple[int, ...]]]) -> list[tuple[int, ...]]:
    """A graph of up to eight nodes, each with up to three edges; two may be the same."""
    size = draw(st.integers(1, MOST))  # type: ignore[arg-type]
    node = st.integers(0, size - 1)  # type: ignore[arg-type, operator]
    return draw(st.lists(st.lists(node, max_size=3).map(tuple), min_size=size, max_size=size))  # type: ignore[arg-type]


def leads(edges: list[tuple[int, ...]], without: Container[int] = ()) -> list[list[bool]]:
    """Whether a path of at least one edge leads from a node to another one and passes none of some nodes between (Warshall's algorithm)."""
    nodes = range(len(edges))
    found = [[other in edges[node] for other in nodes] for node in nodes]
    for between in nodes:
        if between not in without:
            for one in nodes:
                for other in nodes:
                    found[one][other] |= found[one][between] and found[between][other]
    return found
