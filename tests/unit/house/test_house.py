"""House rules that no linter knows: who may import whom, and how large things may grow."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from house_files import FILES, ROOT, name_of, tree_of

from consan import late

# The packages from the ground up, and the packages that each may import from: only packages above it in this table, so there is no cycle.
# A package is a folder, or a file right under consan/. Late imports count.
ERRORS, MACHINE, SESSION = "consan._errors", "consan.backends.cpu", "consan.session"
LATE = "consan.late"  # the table of modules that are imported at their first use: for all
DATACLASS = "consan.dataclass"  # for all
PACKAGES = {
    LATE: (),
    DATACLASS: (),
    ERRORS: (),
    "consan.suggest": (),
    "consan.files": (ERRORS,),
    "consan.temporary": (),
    "consan.instrument.layouts": (),
    "consan.instrument.findings": (),
    "consan.instrument.abi": ("consan.instrument.layouts", "consan.instrument.findings"),
    "consan.instrument.effects": (),
    "consan.instrument": (ERRORS, "consan.instrument.findings", "consan.instrument.abi", "consan.instrument.effects"),
    "consan.reports": (
        *("consan.instrument.abi", "consan.instrument.findings", "consan.instrument.relations", "consan.instrument.sites"),
        "consan.instrument.surfaces",
    ),
    "consan.progress": ("consan.reports",),
    "consan.suppressions": (ERRORS, "consan.files", "consan.reports"),
    "consan.options": (ERRORS, "consan.reports"),
    "consan.config": (ERRORS, "consan.options", "consan.reports", "consan.suppressions"),
    "consan.tensormap": (ERRORS,),
    "consan.textures": (ERRORS,),
    "consan.toolchain": (ERRORS, "consan.instrument"),
    f"{MACHINE}.state": (ERRORS,),
    f"{MACHINE}.decode": ("consan.instrument", f"{MACHINE}.state"),
    f"{MACHINE}.semantics": ("consan.instrument", "consan.tensormap", "consan.textures", f"{MACHINE}.state", f"{MACHINE}.decode"),
    f"{MACHINE}.engine": (
        *(ERRORS, "consan.instrument.ptx", "consan.instrument.isa"),
        *(f"{MACHINE}.state", f"{MACHINE}.decode", f"{MACHINE}.semantics"),
    ),
    MACHINE: (f"{MACHINE}.state", f"{MACHINE}.engine"),
    "consan.backends": (ERRORS, "consan.instrument.layouts", "consan.tensormap", "consan.textures", "consan.toolchain", MACHINE),
    "consan.ranks": (ERRORS,),
    "consan.checker": (ERRORS, "consan.instrument", "consan.reports.verdict", "consan.textures", "consan.toolchain"),
    "consan.ranges": ("consan.instrument", "consan.tensormap", f"{MACHINE}.semantics"),
    "consan.prove": (ERRORS, "consan.instrument"),
    f"{SESSION}.modules": (
        *(ERRORS, "consan.instrument", "consan.reports", "consan.toolchain", "consan.backends", "consan.checker", "consan.ranges"),
    ),
    f"{SESSION}.planning": (
        *(ERRORS, "consan.suggest", "consan.instrument", "consan.options", "consan.reports"),
        *("consan.backends.base", "consan.backends.cpu", "consan.checker.logs.pieces", "consan.ranges", "consan.prove", "consan.toolchain"),
        f"{SESSION}.modules",
    ),
    f"{SESSION}.comparing": (
        *(
            ERRORS,
            "consan.instrument.layouts",
            "consan.reports",
            "consan.backends.base",
            "consan.backends.contexts",
            "consan.checker",
            "consan.ranges",
        ),
        *(f"{SESSION}.modules", f"{SESSION}.planning"),
    ),
    f"{SESSION}.executing": (
        *(ERRORS, "consan.files", "consan.instrument", "consan.reports", "consan.progress", "consan.toolchain"),
        *("consan.backends", "consan.checker", "consan.ranges", "consan.ranks", f"{SESSION}.modules", f"{SESSION}.planning"),
        f"{SESSION}.comparing",
    ),
    f"{SESSION}.collecting": (
        *("consan.instrument.isa", "consan.reports", "consan.options"),
        *(f"{SESSION}.modules", f"{SESSION}.planning", f"{SESSION}.executing"),
    ),
    f"{SESSION}.asking": (
        *(ERRORS, "consan.instrument", "consan.reports", "consan.backends", "consan.checker"),
        *(f"{SESSION}.modules", f"{SESSION}.executing"),
    ),
    SESSION: (
        *(ERRORS, "consan.instrument", "consan.reports", "consan.progress", "consan.backends", "consan.ranges"),
        *(f"{SESSION}.{package}" for package in ("modules", "planning", "executing", "comparing", "collecting", "asking")),
    ),
    "consan.launching": (
        *(ERRORS, "consan.files", "consan.instrument.isa", "consan.instrument.ptx", "consan.options", "consan.reports"),
        *("consan.tensormap", "consan.textures", "consan.toolchain", "consan.backends.base"),
        *("consan.instrument.rewriting.multicast", "consan.instrument.rewriting.ranked"),
    ),
    "consan.libcuda": (
        *(ERRORS, "consan.instrument.ptx", "consan.reports", "consan.tensormap", "consan.textures", "consan.toolchain"),
        *("consan.backends.base", "consan.session"),
    ),
    "consan.adapters": (
        *(ERRORS, "consan.temporary", "consan.instrument", "consan.reports", "consan.tensormap", "consan.toolchain"),
        *("consan.backends", "consan.launching.of_ranks", "consan.launching.placement", "consan.ranks", "consan.session", "consan.libcuda"),
    ),
    "consan.native": (
        *(ERRORS, "consan.temporary", "consan.reports", "consan.backends", "consan.session"),
        *("consan.toolchain", "consan.libcuda", "consan.checker.logs.receipts", "consan.adapters"),
    ),
    "consan.process": (
        *(ERRORS, "consan.reports", "consan.suppressions", "consan.ranks", "consan.session", "consan.adapters", "consan.native.program"),
        "consan.native.python",
    ),
    "consan.building": (
        "consan.backends.call_filter",
        "consan.checker.compiled.build",
        "consan.libcuda.build",
        "consan.native.build",
        "consan.toolchain.host_library",
    ),
    "consan.api": (
        *(ERRORS, "consan.files", "consan.reports", "consan.suppressions", "consan.config", "consan.tensormap", "consan.textures"),
        *("consan.backends.base", "consan.instrument.ptx.extents"),
        *("consan.launching", "consan.session", "consan.adapters"),
    ),
    "consan.annotations": (),
    "consan.triton": (ERRORS, "consan.adapters", "consan.api"),
    "consan.triage": (
        *(ERRORS, "consan.files", "consan.instrument", "consan.options", "consan.reports", "consan.suppressions", "consan.tensormap"),
        *(MACHINE, "consan.launching", "consan.session", "consan.native.run", "consan.process", "consan.toolchain.extras", "consan.api"),
    ),
    "consan.audit": (
        *(ERRORS, "consan.files", "consan.reports", "consan.suppressions", "consan.toolchain", "consan.backends", MACHINE),
        *("consan.session", "consan.instrument", "consan.launching", "consan.adapters", "consan.textures"),
    ),
    "consan.commands": (
        *(ERRORS, "consan.files", "consan.instrument", "consan.reports", "consan.progress", "consan.suppressions", "consan.options"),
        *("consan.config", "consan.toolchain", "consan.ranks", "consan.session", "consan.launching", "consan.adapters", "consan.native"),
        *("consan.temporary", "consan.process", "consan.triage", "consan.audit", "consan.prove"),
    ),
    "consan.plugin": (
        *(ERRORS, "consan.reports", "consan.suppressions", "consan.options", "consan.config", "consan.session", "consan.adapters"),
        *("consan.native", "consan.api", "consan.commands"),
    ),
    "consan.__main__": (*(ERRORS, "consan.reports", "consan.options", "consan.config", "consan.process", "consan.commands"),),
    "consan": (ERRORS, "consan.api", "consan.triton", "consan.reports"),
}
# In these packages, annotations may name types of the packages that use them: they are handed what runs them.
NAMING_UPWARDS = {
    LATE,
    *(f"{MACHINE}.{package}" for package in ("state", "decode", "semantics")),
    *(f"{SESSION}.{package}" for package in ("executing", "comparing", "asking")),
}
FRAMEWORKS = {"cupy", "cupyx", "torch", "triton", "numba", "llvmlite", "cutlass", "nvidia", "cuda"}
RUNTIME = sorted((ROOT / "instrument").rglob("*.cuh"))
LONGEST_FUNCTION, LONGEST_FILE = 60, 400


def _parts(path: Path) -> list[str]:
    """A file as a module: `instrument` and `reports` are installed within `consan`."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    parts = parts if parts[0] == "consan" else ["consan", *parts]
    return parts[:-1] if parts[-1] == "__init__" else parts


MODULES = {".".join(_parts(path)): path for path in FILES}


def _names(node: ast.Import | ast.ImportFrom) -> list[str]:
    return [alias.name for alias in node.names]


@functools.cache
def imported(module: str) -> tuple[tuple[str, bool], ...]:
    """The modules of ours that a module imports, and whether only type checkers see the import."""
    return tuple(_imported(module))


def _imported(module: str) -> Iterator[tuple[str, bool]]:
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    tree = tree_of(path)
    guards = [node for node in ast.walk(tree) if isinstance(node, ast.If) and _is_name(node.test, "TYPE_CHECKING")]
    typing = {id(node) for guard in guards for node in ast.walk(guard)}
    has_late = any(isinstance(node, ast.ImportFrom) and node.module == "consan" and "late" in _names(node) for node in tree.body)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level <= 1, f"{path}: an import from above its own package"
            parent = ".".join(filter(None, (package if node.level else "", node.module)))
            names = [name if (name := f"{parent}.{alias.name}") in MODULES else parent for alias in node.names]
        elif has_late and isinstance(node, ast.Attribute) and _is_name(node.value, "late"):
            names = [late.HOMES[node.attr]]  # an import at its first use is an import
        else:
            names = _names(node) if isinstance(node, ast.Import) else []
        yield from ((name, id(node) in typing) for name in names if within(name, ("consan",)))


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def within(module: str, allowed: Iterable[str]) -> bool:
    return any(module == each or module.startswith(each + ".") for each in allowed)


def _package(module: str) -> str:
    return next(module[:end] for end in range(len(module), 0, -1) if module[:end] in PACKAGES and within(module, (module[:end],)))


@pytest.mark.parametrize("package", PACKAGES)
def test_packages(package: str) -> None:
    below = list(PACKAGES)[: list(PACKAGES).index(package)]
    assert not [each for each in PACKAGES[package] if _package(each) not in below and package != "consan"], (
        "only packages that stand before it"
    )
    inside = [module for module in MODULES if _package(module) == package]
    found = {(module, name, typed) for module in inside for name, typed in imported(module) if _package(name) != package}
    free = package in NAMING_UPWARDS
    wrong = {
        f"{module}: {name}"
        for module, name, typed in found
        if not within(name, (LATE, DATACLASS, *PACKAGES[package])) and not (typed and free)
    }
    assert inside
    assert not wrong


def _picture() -> list[tuple[str, ...]]:
    """The layers of instrument/README.md from the top, each with its packages' module names."""
    drawn = (ROOT / "instrument" / "README.md").read_text().split("```")[1].splitlines()[1:]
    layers = [re.split(r"\s{2,}", line.strip())[0].replace("/", ".").split(", ") for line in drawn]
    prefix = [names[0].rpartition(".")[0] for names in layers]
    whole = [[names[0], *(f"{before}.{name}" for name in names[1:])] for names, before in zip(layers, prefix, strict=True)]
    return [tuple(name if name.startswith("consan.") else f"consan.{name}" for name in names) for names in whole]


def test_the_picture_of_the_layers_is_true() -> None:
    """A layer imports only from those below it."""
    layers = _picture()
    height = {name: -number for number, names in enumerate(layers) for name in names}

    def layer(module: str) -> str | None:
        return next((name for name in height if within(module, (name,))), None)

    folders = {".".join(module.split(".")[:depth]) for module in MODULES for depth in (2, 3) if module.count(".") >= depth}
    drawn = {name for name in folders if name.startswith(("consan.instrument.", "consan.reports")) or name.count(".") == 1}
    assert {name for name in drawn if layer(name) is None} <= {"consan.instrument"}
    upwards = [
        f"{module}: {name}"
        for module in MODULES
        for name, typed in imported(module)
        if not typed and (own := layer(module)) and (other := layer(name)) and height[other] > height[own]
    ]
    assert upwards == []


@pytest.mark.parametrize("package", PACKAGES)
def test_the_table_of_packages_allows_no_more_than_is_used(package: str) -> None:
    used = {name for module in MODULES if _package(module) == package for name, _ in imported(module)}
    assert not [allowed for allowed in PACKAGES[package] if not any(within(name, (allowed,)) for name in used)]


def test_no_files_of_consan_and_reports_import_each_other_in_a_circle() -> None:
    """A late import is an import: what two files need is in a third."""
    ours = [module for module in MODULES if not within(module, ("consan.instrument",))]
    left = {module: {name for name, typed in imported(module) if not typed and name != module} for module in ours}
    while free := [module for module, names in left.items() if not names & left.keys()]:
        for module in free:
            del left[module]
    assert left == {}


def test_device_libraries_are_imported_only_where_they_are_needed() -> None:
    """`import consan` must work with numpy and rich alone."""
    allowed = {"numpy", "rich", "consan"}
    for path in FILES:
        if path.parent == ROOT / "consan/annotations" and path.name != "__init__.py":  # each is for one framework
            continue
        for node in tree_of(path).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
                foreign = {name.split(".")[0] for name in names} & FRAMEWORKS
                assert not foreign, f"{path.relative_to(ROOT)} imports {foreign} at its top; beyond {allowed} imports are local"


def test_functions_fit_on_a_screen_and_modules_say_what_they_do() -> None:
    assert [name_of(path) for path in FILES if not ast.get_docstring(tree_of(path))] == [], "modules without a docstring"
    nodes = ((path, node) for path in FILES for node in ast.walk(tree_of(path)))
    functions = [(path, node) for path, node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    lengths = {f"{name_of(path)}: {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1 for path, node in functions}
    assert {name: n for name, n in lengths.items() if n > LONGEST_FUNCTION} == {}


_BODY = re.compile(r"^(?:template <[^>]*> )?(?:DEVICE|COLD|HOOK) [^\n]*?(\w+)\([^\n]*\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("path", RUNTIME, ids=lambda path: path.stem)
def test_runtime_files_fit_too_and_say_what_they_do(path: Path) -> None:
    """What they may include is in test_runtime_files.py."""
    text = path.read_text()
    assert text.startswith("// ")
    assert len(text.splitlines()) <= LONGEST_FILE
    assert {name: body.count("\n") for name, body in _BODY.findall(text) if body.count("\n") > LONGEST_FUNCTION} == {}


def test_no_file_is_longer_than_a_reader_keeps_in_mind() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in FILES}
    assert {name: length for name, length in lengths.items() if length > LONGEST_FILE} == {}


UNIT = ROOT / "tests" / "unit"
HOUSE = "house"  # the folder of tests that belong to no package, such as these


def test_unit_tests_mirror_the_packages() -> None:
    """A folder has the name of a folder of the product, a test beside the folders that of a file right under consan/."""
    packages = {path.parent.name for path in (*FILES, *RUNTIME)} | {HOUSE}
    files = {f"test_{path.name}" for path in (ROOT / "consan").glob("*.py")}
    tests = [path.relative_to(UNIT) for path in UNIT.rglob("test_*.py")]
    assert {str(path) for path in tests if len(path.parts) == 1} <= files
    assert {str(path.parent) for path in tests if len(path.parts) > 1} <= packages


def test_no_two_files_of_tests_share_a_name() -> None:
    """Folders of tests are no packages: a module is known by its file's name alone. The corpus is one, and runs its producers by path."""
    stems = [path.stem for path in (ROOT / "tests").rglob("*.py") if path.stem != "conftest" and "corpus" not in path.parts]
    assert {stem for stem in stems if stems.count(stem) > 1} == set()


# Uses of private names of consan in tests, at most.
PRIVATE_USES = 53


def _private(name: object) -> bool:
    return isinstance(name, str) and name.startswith("_") and not name.startswith("__") and name != "_"


def _defined(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr


def _uses(tree: ast.AST, ours: set[str]) -> Iterator[str]:
    """Private names of ours that a test imports, reads or replaces; not those of its own objects."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and within(node.module or "", ("consan",)):
            yield from (alias.name for alias in node.names if _private(alias.name))
        elif isinstance(node, ast.Attribute) and node.attr in ours and ast.unparse(node.value) not in ("self", "cls", "os"):
            yield node.attr
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in ("setattr", "delattr"):
            yield from (word.value for word in node.args[1:2] if isinstance(word, ast.Constant) and word.value in ours)


def test_tests_use_few_private_names() -> None:
    """A test asks for what is public. The number above only falls."""
    ours = {name for path in FILES for name in _defined(tree_of(path)) if _private(name)}
    found = {path: list(_uses(ast.parse(path.read_text()), ours)) for path in (ROOT / "tests").rglob("*.py")}
    assert sum(map(len, found.values())) <= PRIVATE_USES, {str(path.relative_to(ROOT)): names for path, names in found.items() if names}


# Names that two public classes share, and why. A class with a leading underscore belongs to its file.
SHARED_NAMES = {
    "Device": "the stand-in has CuPy's name; the session's is a device of this process",
    "Event": "the stand-ins have the names of CuPy and torch; the other is what a recorded thread did, or a point of a consan.Stream",
    "Stream": "the stand-ins have the names of CuPy and torch; consan.Stream is for launches of its own",
}


def test_no_two_classes_of_the_product_share_a_name() -> None:
    nodes = [node for path in FILES for node in ast.walk(tree_of(path)) if isinstance(node, ast.ClassDef)]
    names = [node.name for node in nodes if not node.name.startswith("_")]
    assert {name for name in names if names.count(name) > 1} == set(SHARED_NAMES)


def _called(tree: ast.AST) -> set[str]:
    return {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}


def _hidden(tree: ast.Module) -> Iterator[str]:
    """Functions that hide one of their module which they call."""
    names = {alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    names |= {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        stored = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        if stored & names & _called(function):
            yield f"{function.lineno}: {function.name}"


def test_no_local_name_hides_a_function_of_the_module_that_is_called_beside_it() -> None:
    """A comprehension's variable does so too: Python 3.12 then finds the function unbound in another comprehension."""
    assert [f"{name_of(path)}:{each}" for path in FILES for each in _hidden(tree_of(path))] == []
