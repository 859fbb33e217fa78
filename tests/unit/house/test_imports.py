"""Imports stand at the top of files. What must be late for a quick start is in one table: consan/late.py."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec

from house_files import FILES, ROOT, tree_of

from consan import late

ANYWHERE = "it runs in each interpreter of a program, which may have no consan"
# Imports inside functions, and why.
INSIDE = {
    (
        "consan/process/startup/sitecustomize.py",
        "consan.native.python",
    ): ANYWHERE,
    ("consan/process/startup/sitecustomize.py", "consan.process"): ANYWHERE,
    ("consan/process/supervisor.py", "ctypes"): "in a child that has just been forked",
    ("consan/process/supervisor.py", "fcntl"): "only systems that have it can supervise",
    ("consan/toolchain/cache.py", "fcntl"): "systems without it have no such locks",
    ("instrument/ptx/tree.py", "consan.instrument.ptx.declarations"): "a node reads its declaration, which is made of nodes",
    ("instrument/ptx/tree.py", "consan.instrument.ptx.locations"): "a module reads its debug strings, which few modules need",
}
MODULES = 63  # in the table of late.py, at most: each entry costs a reader a look-up, so it must spare a start time


def _inside(node: ast.AST, function: bool = False) -> Iterator[ast.Import | ast.ImportFrom]:
    for child in ast.iter_child_nodes(node):
        if function and isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        yield from _inside(child, function or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))


def test_imports_stand_at_the_top() -> None:
    found = [(str(path.relative_to(ROOT)), node) for path in FILES for node in _inside(tree_of(path))]
    names = {(path, node.module if isinstance(node, ast.ImportFrom) else node.names[0].name) for path, node in found}
    assert names == INSIDE.keys()
    assert len(found) == len(INSIDE)


def test_the_table_of_late_modules_is_what_type_checkers_read() -> None:
    tree = ast.parse((ROOT / "consan" / "late.py").read_text())
    guard = next(node for node in tree.body if isinstance(node, ast.If))
    named = {}
    for node in guard.body:
        assert isinstance(node, ast.Import | ast.ImportFrom)
        parent = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        named |= {alias.asname or alias.name: f"{parent}{alias.name}" for alias in node.names}
    assert named == late.HOMES
    assert len(named) <= MODULES


def _has_late(tree: ast.Module) -> bool:
    imports = (node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "consan")
    return any(alias.name == "late" for node in imports for alias in node.names)


def test_each_late_module_exists_and_is_used() -> None:
    trees = [tree for tree in map(tree_of, FILES) if _has_late(tree)]
    nodes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    used = {node.attr for node in nodes if isinstance(node.value, ast.Name) and node.value.id == "late"}
    assert used == late.HOMES.keys()
    assert [home for home in late.HOMES.values() if home.startswith("consan.") and find_spec(home) is None] == []


def _loaded(code: str) -> set[str]:
    """The modules that code imports in a new interpreter."""
    text = f"import sys\nbefore = set(sys.modules)\n{code}\nprint(*sorted(set(sys.modules) - before), file=sys.stderr)"
    return set(subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True).stderr.split())


def _is_there(module: str, name: str) -> bool:
    """Whether a module has a name, if what it needs is installed."""
    try:
        if not hasattr(importlib.import_module(module), name):
            importlib.import_module(f"{module}.{name}")
    except ImportError as error:
        return (error.name or "").partition(".")[0] != "consan"
    return True


def test_what_tests_and_tools_import_is_there() -> None:
    """Tools that are run by hand (tests/quality, tests/bench) have no other test."""
    nodes = [(path, node) for path in sorted((ROOT / "tests").rglob("*.py")) for node in ast.walk(ast.parse(path.read_text()))]
    found = [(path, node) for path, node in nodes if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "consan"]
    names = {(node.module or "", alias.name): path.name for path, node in found for alias in node.names}
    assert [(*each, file) for each, file in names.items() if not _is_there(*each)] == []
    assert len(names) > 1000


def test_what_starts_quickly_imports_nothing_heavy() -> None:
    """No late module is imported at a start, and neither is NumPy."""
    heavy = {*late.HOMES.values(), "numpy", "rich"}
    assert _loaded("import consan") & heavy == set()
    run = "runpy.run_module('consan', run_name='__main__')"
    help_text = f"import contextlib, runpy\nsys.argv[1:] = ['--help']\nwith contextlib.suppress(SystemExit):\n    {run}"
    assert _loaded(help_text) & heavy == set()
