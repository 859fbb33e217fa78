"""Folders within a package: those that lie side by side import one way, in Python as in C++."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from house_files import ROOT
from test_house import MODULES, imported, within

CHECKER = ROOT / "consan/checker/source"
HEADERS = sorted(CHECKER.rglob("*.[hc]pp"))
PARENTS = sorted({module.rpartition(".")[0] for module, path in MODULES.items() if path.name == "__init__.py" and "." in module})


def _circle(edges: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The edges that are left once all that end at a node without edges of its own are gone."""
    while gone := {(a, b) for a, b in edges if b not in {start for start, _ in edges}}:
        edges = edges - gone
    return edges


def _between(parent: str) -> Iterator[tuple[str, str, str]]:
    """Imports between the folders right under a package: their names, and the import."""
    depth = parent.count(".") + 1
    for module in (each for each in MODULES if within(each, (parent,))):
        for name, typed in imported(module):
            ends = [".".join(each.split(".")[: depth + 1]) for each in (module, name)]
            folders = all(each != parent and MODULES.get(each, ROOT).name == "__init__.py" for each in ends)
            if folders and not typed and within(name, (parent,)) and ends[0] != ends[1]:
                yield ends[0], ends[1], f"{module}: {name}"


@pytest.mark.parametrize("parent", PARENTS)
def test_folders_side_by_side_import_one_way(parent: str) -> None:
    found = set(_between(parent))
    left = _circle({(a, b) for a, b, _ in found})
    assert {text for a, b, text in found if (a, b) in left} == set()


def test_folders_of_the_checker_include_one_way() -> None:
    homes = {path.name: str(path.parent.relative_to(CHECKER)) for path in HEADERS}
    assert len(homes) == len(HEADERS), "files include each other by name alone"
    included = [(path, name) for path in HEADERS for name in re.findall(r'#include "([^"]+)"', path.read_text())]
    edges = {(homes[path.name], homes[name]) for path, name in included if name in homes}
    assert _circle({(a, b) for a, b in edges if a != b}) == set()
