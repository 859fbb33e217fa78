"""Only the instruction table and the semantics that are registered for its rows know opcodes by their text.

Everything else asks a row: its family, its action, where control goes, its modifiers, the event of an instruction.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from consan.instrument.isa import ROWS

ROOT = Path(__file__).parents[3]
# Where opcodes are spelled: the table, the reader of PTX, and what registers operations for rows.
SPELLED = ("instrument/isa/", "instrument/ptx/", "consan/backends/cpu/semantics/")
# Registrations by the name of a row, in files that do more: what each computes, or hooks in.
REGISTERED = {
    "instrument/passes/bulk.py": {"_ASYNC_KINDS", "_HANDLERS"},
    "instrument/passes/matrix.py": {"handlers"},
    "instrument/passes/mbarriers.py": {"_HANDLERS"},
    "instrument/passes/waits.py": {"_RESULTS"},
    "instrument/record/launch_control.py": {"_SELECTS"},
    "instrument/record/reach.py": {"_OF_GRIDS"},
    "instrument/relations.py": {"_OPERATORS", "is_plain", "_split", "of"},
}
NAMES = {row.name for row in ROWS} | {row.name.partition(".")[0] for row in ROWS}
# Words of the table's own vocabulary, and words of operations that are not opcodes where they stand.
VOCABULARY = {word for row in ROWS for word in (row.family, row.action, row.flow, *row.operands)}
VOCABULARY |= {word for row in ROWS for slots in row.slots for slot in slots for word in slot.words}
FILES = sorted(
    path
    for folder in ("consan/backends", "consan/session", "consan/adapters", "instrument")
    for path in (ROOT / folder).rglob("*.py")
    if not path.relative_to(ROOT).as_posix().startswith(SPELLED)
)


def _registered(tree: ast.Module, names: set[str]) -> set[ast.AST]:
    """The nodes of the tables that register something for rows."""
    return {inner for node in ast.walk(tree) if names & set(_names(node)) for inner in ast.walk(node)}


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef):
        yield node.name
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    yield from (each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name))


def _spelled(tree: ast.Module, allowed: set[ast.AST]) -> Iterator[str]:
    """Literals that are opcodes, and uses of an instruction's opcode other than to hand it on whole."""
    handed = {argument for node in ast.walk(tree) if isinstance(node, ast.Call) for argument in node.args}
    for node in ast.walk(tree):
        if node in allowed:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in NAMES - VOCABULARY:
            yield f"{node.lineno}: {node.value!r}"
        if isinstance(node, ast.Attribute) and node.attr == "parts" and node not in handed:
            yield f"{node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_opcode_is_spelled_outside_the_table(path: Path) -> None:
    tree = ast.parse(path.read_text())
    names = REGISTERED.get(path.relative_to(ROOT).as_posix(), set())
    assert list(_spelled(tree, _registered(tree, names))) == []


def test_an_opcode_would_be_seen() -> None:
    tree = ast.parse('if instruction.parts[0] in ("bra", "wgmma.fence") or lookup(instruction.parts): pass')
    assert sorted(_spelled(tree, set())) == ["1: 'bra'", "1: 'wgmma.fence'", "1: instruction.parts"]
