"""House rules that no linter knows: who may import whom, and how large things may grow."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Folder -> the modules of ours that it may import from: everything else would turn the layers upside down.
LAYERS = {
    "instrument": ("consan._errors", "consan.instrument"),
    "reports": ("consan._errors", "consan.instrument.layout", "consan.instrument.relations", "consan.instrument.sites", "consan.reports"),
    "consan/backends": ("consan._errors", "consan.backends", "consan.instrument.ptx", "consan.tensormap", "consan.toolchain"),
    "consan/toolchain": ("consan._errors", "consan.toolchain"),
}
FILES = sorted(path for folder in ("consan", "instrument", "reports") for path in (ROOT / folder).rglob("*.py"))
LONGEST_FUNCTION = 60


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level <= 1, f"{path}: an import from above its own package"
            yield "" if node.level else node.module or ""
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def _within(module: str, allowed: tuple[str, ...]) -> bool:
    return any(module == each or module.startswith(each + ".") for each in allowed)


@pytest.mark.parametrize("folder", LAYERS)
def test_layers(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    wrong = {f"{path.relative_to(ROOT)}: {name}" for path in files for name in _imported(path) if _within(name, ("consan",))}
    wrong -= {entry for entry in wrong if _within(entry.split(": ")[1], LAYERS[folder])}
    assert files
    assert not wrong


def test_device_libraries_are_imported_only_where_they_are_needed() -> None:
    """`import consan` must work with numpy and rich alone."""
    allowed = {"numpy", "rich", "consan"}
    for path in FILES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
                foreign = {name.split(".")[0] for name in names} & {"cupy", "cupyx", "torch", "triton", "numba", "nvidia", "cuda"}
                assert not foreign, f"{path.relative_to(ROOT)} imports {foreign} at its top; beyond {allowed} imports are local"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_functions_fit_on_a_screen_and_modules_say_what_they_do(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree), "a module without a docstring"
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    lengths = {node.name: (node.end_lineno or node.lineno) - node.lineno + 1 for node in functions}
    assert {name: n for name, n in lengths.items() if n > LONGEST_FUNCTION} == {}
