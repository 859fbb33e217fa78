"""Only the instruction table and the semantics that are registered for its rows know opcodes by their text.

Everything else asks a row: its traits, its modifiers, the event of an instruction. Nothing else compares a row's family, action or flow.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from house_files import FILES as ALL, name_of, tree_of

from consan.instrument.isa import ROWS

# Where opcodes are spelled: the table, the reader of PTX, and what registers operations for rows.
SPELLED = (
    "instrument/isa/",
    "instrument/ptx/",
    "consan/backends/cpu/semantics/",
    "consan/prove/operations.py",
    "consan/checker/logs/program.py",
)
# Registrations by the name of a row, in files that do more: what each computes, or hooks in.
REGISTERED = {
    "instrument/passes/bulk.py": {"_ASYNC_KINDS", "_HANDLERS"},
    "instrument/passes/matrix.py": {"handlers"},
    "instrument/passes/mbarriers.py": {"_HANDLERS"},
    "instrument/waits/waits.py": {"_RESULTS"},
    "instrument/record/families/launch_control.py": {"_SELECTS"},
    "instrument/rewriting/multicast.py": {"_ACCESSES"},
    "instrument/relations.py": {"_OPERATORS", "is_plain", "_split", "of"},
}
NAMES = {row.name for row in ROWS} | {row.name.partition(".")[0] for row in ROWS}
# Words of the table's own vocabulary, and words of operations that are not opcodes where they stand.
VOCABULARY = {word for row in ROWS for word in (row.family, row.action, row.flow, *row.operands)}
VOCABULARY |= {word for row in ROWS for slots in row.slots for slot in slots for word in slot.words}
OPCODES = NAMES - VOCABULARY
# What asks for traits, and what may not spell an opcode.
ASKING = [path for path in ALL if not name_of(path).startswith(SPELLED)]
FILES = [path for path in ASKING if name_of(path).startswith(("consan/backends/", "consan/session/", "consan/adapters/", "instrument/"))]
# Tables of flows, which end blocks; and one of families, of sites: reports have no rows.
OTHER_TABLES = {"_BREAKS", "_DEPARTURES", "_DEPARTS", "_WARP_FAMILIES"}
WORDS_OF_ROWS = {"family", "flow", "family_of", "flow_of"}
# Names of opcodes and their modifiers; what holds the text of an instruction; and how sets and strings are compared.
WORDS = NAMES | {word for row in ROWS for slots in row.slots for slot in slots for word in slot.words if word}
TEXTS = {"parts", "opcode", "op", "words", "word", "modifiers"}
COMPARES = {"isdisjoint", "issubset", "issuperset", "intersection", "startswith", "endswith"}
MOST_WORDS = 59  # comparisons with such words that are left


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
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in OPCODES:
            yield f"{node.lineno}: {node.value!r}"
        if isinstance(node, ast.Attribute) and node.attr == "parts" and node not in handed:
            yield f"{node.lineno}: {ast.unparse(node)}"


def _compared(tree: ast.Module) -> Iterator[str]:
    """Comparisons of a word of a row with a literal, or with a table of literals."""
    tables = {name for node in tree.body for name in _names(node) if name.startswith("_") and name not in OTHER_TABLES}
    for node in (each for each in ast.walk(tree) if isinstance(each, ast.Compare)):
        literals = [inner for side in (node.left, *node.comparators) for inner in (side, *getattr(side, "elts", ()))]
        literal = any(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in literals)
        literal |= any(isinstance(each, ast.Name) and each.id in tables for each in literals)
        asked = {name for side in (node.left, *node.comparators) for name in _asked(side)}
        if literal and asked & WORDS_OF_ROWS:
            yield f"{node.lineno}: {ast.unparse(node)}"


def _asked(side: ast.expr) -> Iterator[str]:
    """The attribute or function that a side of a comparison asks; `row.action` counts as a family."""
    called = side.func if isinstance(side, ast.Call) else side
    if isinstance(called, ast.Attribute):
        yield "family" if called.attr == "action" and ast.unparse(called.value).endswith("row") else called.attr
    if isinstance(called, ast.Name):
        yield called.id


def test_rows_are_asked_for_traits() -> None:
    assert [f"{name_of(path)}:{each}" for path in ASKING for each in _compared(tree_of(path))] == []


def test_a_comparison_would_be_seen() -> None:
    text = '_T = {"call"}; a = row.family == "load" or work.row.action in ("red", "sync") or flow_of(each) in _T or step.action == "add"'
    assert sorted(_compared(ast.parse(text))) == [
        "1: flow_of(each) in _T", "1: row.family == 'load'", "1: work.row.action in ('red', 'sync')",
    ]  # fmt: skip


def _words_compared(tree: ast.Module) -> Iterator[str]:
    """Comparisons of the text of an instruction with words of opcodes, or with a table of them."""
    tables = {name: set(_strings(node.value, {})) for node in tree.body for name in _names(node) if getattr(node, "value", None)}
    for node in ast.walk(tree):
        sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in COMPARES:
            sides = [node.func.value, *node.args]
        texts = [side for side in sides if any(getattr(each, "attr", getattr(each, "id", "")) in TEXTS for each in ast.walk(side))]
        if any(not WORDS.isdisjoint(_strings(other, tables)) for side in texts for other in sides if other is not side):
            yield f"{node.lineno}: {ast.unparse(node)}"


def _strings(node: ast.AST, tables: dict[str, set[str]]) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value.strip(".")
        elif isinstance(each, ast.Name):
            yield from tables.get(each.id, ())


def test_few_words_of_opcodes_are_compared_outside_the_table() -> None:
    """Ask a trait, or a function of `instrument/isa`, instead of one more comparison; where one goes, lower the bound."""
    found = [f"{name_of(path)}:{each}" for path in ASKING for each in _words_compared(tree_of(path))]
    assert len(found) <= MOST_WORDS, "\n".join(found)


def test_a_word_would_be_seen() -> None:
    text = '_T = {"cas"}; a = "trans" in work.words; b = _T.isdisjoint(op.split(".")); c = opcode.startswith("mbarrier."); d = "x" in parts'
    found = ["1: 'trans' in work.words", "1: _T.isdisjoint(op.split('.'))", "1: opcode.startswith('mbarrier.')"]
    assert sorted(_words_compared(ast.parse(text))) == found


def test_no_opcode_is_spelled_outside_the_table() -> None:
    trees = {name_of(path): tree_of(path) for path in FILES}
    allowed = {name: _registered(tree, REGISTERED.get(name, set())) for name, tree in trees.items()}
    assert [f"{name}:{each}" for name, tree in trees.items() for each in _spelled(tree, allowed[name])] == []


def test_an_opcode_would_be_seen() -> None:
    tree = ast.parse('if instruction.parts[0] in ("bra", "wgmma.fence") or lookup(instruction.parts): pass')
    assert sorted(_spelled(tree, set())) == ["1: 'bra'", "1: 'wgmma.fence'", "1: instruction.parts"]
