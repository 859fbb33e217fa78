"""Programs in Python that import a framework which launches by itself: on a GPU they run as programs that are not Python.

How their kernels are seen: consan/native/python/frameworks.py. A program is a script, a module (-m) or code (-c). Its own modules that it
imports are read, too, as far as they lie in its folder or in the working directory, and so are the scripts and tests that its words name.
For installed packages that they import, what their distributions require counts (requirements.py).

Not handled: a framework that an installed package imports without requiring it (`consan run /path/to/python script.py`).
"""

from __future__ import annotations

import argparse
import ast
import importlib.machinery
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from consan import late
from consan.native.program import NativeProgram
from consan.native.python.requirements import framework_required

# Packages, and the framework that launches for them.
PACKAGES: Final = {
    **dict.fromkeys(("cutlass", "quack", "flash_attn.cute"), "CuTe DSL"),
    "tilelang": "tilelang",
    "warp": "Warp",
    "jax": "JAX",
    "numba_cuda_mlir": "numba-cuda-mlir",
}
_NOTE: Final = "{} loads and launches its kernels itself: the program ran as one that is not Python"
_TESTERS: Final = ("pytest", "py.test", "unittest")
_MOST: Final = 150  # files that are read
_IMPORT: Final = re.compile(rb"(?m)(?:^|:)[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]*(\([^)]*\)|[^#\n]*)|import[ \t]+([^#\n]*))")


def find_framework_program(args: argparse.Namespace) -> NativeProgram | None:
    """The program of a command, if it imports such a framework and there is a GPU."""
    ways = (("-m", args.module), ("-c", args.code), ("", args.program))
    option, words = next(way for way in ways if way[1] is not None)
    if args.device == "cpu" or not words or not words[0]:
        return None
    title = framework_of(*_started(option, words))
    if not title or not late.native_run.has_gpu():
        return None
    command = (sys.executable, *filter(None, [option]), *words)
    return NativeProgram(sys.executable, command, _NOTE.format(title), "c" if option == "-c" else words[0])


def framework_of_tests(words: Sequence[str]) -> str:
    """The framework that tests import, which the words of pytest name; without any, those of the working directory."""
    return framework_of(*(_named(words) or _named(["."])))


def framework_of(*begins: Path | str) -> str:
    """The framework that programs (files, or the texts of some) or installed packages that they import need; empty if there is none."""
    left, seen, imported = list(begins), set[Path](), set[str]()
    roots = (os.getcwd(), *{str(each.parent) for each in begins if isinstance(each, Path)})
    while left and len(seen) < _MOST:
        file = left.pop(0)
        if isinstance(file, Path) and file in seen:
            continue
        seen |= {file} if isinstance(file, Path) else set()
        source = _read(file)
        names = list(dict.fromkeys(_names(source)))
        found = _framework(source) if isinstance(file, str) or any(map(_package, names)) else ""
        if found:
            return found
        left += [each for name in names for each in _files(name, file, roots)]
        imported |= {name.partition(".")[0] for name in names}
    return framework_required(imported - sys.stdlib_module_names - {""})


# -- where a program begins ----------------------------------------------------------------------------------------------------------------


def _started(option: str, words: Sequence[str]) -> list[Path | str]:
    """The files of a program, or its text."""
    if option == "-c":
        return [words[0]]
    tests = Path(words[0]).name in _TESTERS
    given = _named(words[1:]) if tests else [path for path in map(Path, words[1:]) if path.suffix == ".py" and path.is_file()]
    if tests:
        return [*(given or _named(["."]))]
    own = _of_module(words[0]) if option else [Path(words[0])] if _is_script(words[0]) else []
    return [*own, *given] if own else []


def _is_script(name: str) -> bool:
    if name.endswith(".py"):
        return True
    try:
        with open(name, "rb") as file:
            head = file.readline(256)
    except OSError:
        return False
    return head.startswith(b"#!") and b"python" in head


def _named(words: Sequence[str]) -> list[Path]:
    """The files that words name: files of Python, those in folders, and modules."""
    paths = [Path(word.partition("::")[0]) for word in words if word and not word.startswith("-")]
    found = [path for path in paths if path.suffix == ".py" and path.is_file()]
    found += [each for path in paths if path.is_dir() for each in _within(path)]
    return found + [each for path in paths if not path.exists() for each in _of_module(str(path))]


def _within(folder: Path) -> Iterator[Path]:
    """The files of Python in a folder. Environments and hidden folders are left out."""
    for where, folders, files in os.walk(folder):
        hidden = [each for each in folders if each.startswith((".", "__")) or Path(where, each, "pyvenv.cfg").exists()]
        folders[:] = [each for each in folders if each not in hidden]
        yield from (Path(where, each) for each in files if each.endswith(".py"))


def _of_module(name: str) -> list[Path]:
    """The files of a module, and of the packages that it lies in. Nothing is imported."""
    first, *rest = name.split(".")
    if not all(map(str.isidentifier, (first, *rest))):
        return []
    try:
        spec = importlib.machinery.PathFinder.find_spec(first, [os.getcwd(), *sys.path])
    except (ImportError, ValueError):
        return []
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    if spec is not None and not folders and spec.origin and not rest:
        return [Path(spec.origin)]
    return [each for folder in folders for each in _along(Path(folder), rest)]


def _along(folder: Path, names: Sequence[str]) -> list[Path]:
    found = [folder / "__init__.py"]
    for name in names:
        found.append(folder / f"{name}.py")
        folder /= name
        found.append(folder / "__init__.py")
    return [each for each in (*found, folder / "__main__.py") if each.is_file()]


# -- what it imports -----------------------------------------------------------------------------------------------------------------------


def _read(file: Path | str) -> bytes:
    try:
        return file.encode() if isinstance(file, str) else file.read_bytes()
    except OSError:  # said where the program is run
        return b""


def _framework(source: bytes) -> str:
    try:
        packages = map(_package, _imported(ast.parse(source)))
    except (SyntaxError, ValueError):  # said where the program is run
        return ""
    return next((PACKAGES[each] for each in packages if each), "")


def _imported(tree: ast.Module) -> list[str]:
    plain = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    given = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level)
    return plain + [f"{node.module}.{alias.name}" for node in given for alias in node.names]


def _package(name: str) -> str:
    return next((each for each in PACKAGES if f"{name}.".startswith(f"{each}.")), "")


def _names(source: bytes) -> Iterator[str]:
    """The modules that a file may import: quickly, by its lines."""
    for module, names, plain in _IMPORT.findall(source.replace(b";", b"\n")):
        firsts = [words[0] for each in (names or plain).decode(errors="replace").strip("() \t\r\n").split(",") if (words := each.split())]
        if not module:
            yield from firsts
            continue
        start = module.decode()
        yield start
        yield from (f"{start}{each}" if start.endswith(".") else f"{start}.{each}" for each in firsts if each.isidentifier())


def _files(name: str, importer: Path | str, roots: Sequence[str]) -> list[Path]:
    """The files of a module of the program's own."""
    parts = name.lstrip(".").split(".")
    level = len(name) - len(name.lstrip("."))
    if not level:
        return [each for root in roots for each in _of_own(root, parts)]
    above = importer.parents if isinstance(importer, Path) else ()
    return _of_own(str(above[level - 1]), parts) if level <= len(above) else []


def _of_own(place: str, parts: Sequence[str]) -> list[Path]:
    first = os.path.join(place, parts[0])
    if os.path.isfile(f"{first}.py"):
        return [Path(f"{first}.py")]
    return _along(Path(first), parts[1:]) if os.path.isdir(first) else []
