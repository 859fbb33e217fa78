"""How much a reader has to keep in mind: the fields and constructor of a class, the files of a folder, layouts by hand."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from house_files import FILES, ROOT, tree_of

FOLDERS = ("consan", "instrument", "reports")
MOST_FIELDS, MOST_PARAMETERS, MOST_FILES = 15, 8, 16

# Public classes of the report have the fields of `consan.report/1`; the record of a finding has those of all kinds.
PUBLIC = {"Access", "Finding", "FindingRecord", "KernelSummary", "Outcome", "Report"}
# Constructors of the stand-in have CuPy's parameters.
PARAMETERS = {"ElementwiseKernel": 11, "ReductionKernel": 11}
# The virtual machine and the called hooks are as large as the ISA.
FREE = ("consan/backends/cpu", "instrument/runtime")


def _classes() -> Iterator[ast.ClassDef]:
    yield from (node for path in FILES for node in ast.walk(tree_of(path)) if isinstance(node, ast.ClassDef))


def _stored(function: ast.FunctionDef) -> Iterator[str]:
    """Attributes of `self` that a function sets."""
    for node in ast.walk(function):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        for target in (each for one in targets for each in (one.elts if isinstance(one, ast.Tuple) else [one])):
            if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                yield target.attr


def _fields(node: ast.ClassDef) -> int:
    declared = {
        each.target.id
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and "ClassVar" not in ast.unparse(each.annotation)
    }
    made = [each for each in node.body if isinstance(each, ast.FunctionDef)]
    return len(declared | {name for function in made for name in _stored(function)})


def _parameters(node: ast.ClassDef) -> int:
    """Parameters of a constructor that is written; that of a dataclass has its fields."""
    made = next((each.args for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)
    return 0 if made is None else len(made.posonlyargs) + len(made.args) + len(made.kwonlyargs) - 1


def _over(sizes: dict[str, int], most: int, known: dict[str, int]) -> dict[str, int]:
    """What is larger than it may be, and what is noted without need."""
    large = {name: size for name, size in sizes.items() if size > known.get(name, most)}
    return large | {name: sizes.get(name, 0) for name in known if sizes.get(name, 0) <= most}


def test_no_class_has_more_fields_than_a_reader_keeps_in_mind() -> None:
    sizes: dict[str, int] = {}
    for node in _classes():
        sizes[node.name] = max(_fields(node), sizes.get(node.name, 0))
    assert set(sizes) >= PUBLIC
    assert _over({name: size for name, size in sizes.items() if name not in PUBLIC}, MOST_FIELDS, {}) == {}


def test_no_constructor_has_more_parameters() -> None:
    sizes: dict[str, int] = {}
    for node in _classes():
        sizes[node.name] = max(_parameters(node), sizes.get(node.name, 0))
    assert _over(sizes, MOST_PARAMETERS, PARAMETERS) == {}


def test_no_flat_folder_is_longer_than_a_screen() -> None:
    """Files of one folder, without its `__init__.py`."""
    folders = [path for folder in FOLDERS for path in (ROOT / folder, *(ROOT / folder).rglob("*")) if path.is_dir()]
    suffixes = (".py", ".hpp", ".cpp", ".cuh")
    counts = {
        str(path.relative_to(ROOT)): sum(each.suffix in suffixes and each.name != "__init__.py" for each in path.iterdir())
        for path in folders
    }
    sizes = {name: count for name, count in counts.items() if not name.startswith(FREE)}
    assert _over(sizes, MOST_FILES, {}) == {}


def test_layouts_by_hand_are_those_of_cuda() -> None:
    """All others come from tables (`consan.instrument.layouts`), or have one field for each row of one."""
    found = {node.name for node in _classes() if any(ast.unparse(base) in ("ctypes.Structure", "ctypes.Union") for base in node.bases)}
    assert found == {"CallbackData", "LaunchAttribute", "LaunchAttributeValue", "LaunchConfig", "_Hooks"}
