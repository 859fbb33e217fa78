"""The Makefile of a source: the other sources of its program, its include folders and macros, and the arguments that `make run` gives it.

Variables are expanded where they stand in the same file. Where no Makefile names the source, a CMakeLists.txt does (cmake.py). Not handled:
functions of make, conditions (all branches count), included files.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from consan.audit.host import cmake, sizes
from consan.dataclass import dataclass

_NAMES: Final = ("Makefile", "makefile", "GNUmakefile")
_LEVELS: Final = 2  # the folders above a source where its Makefile may be
_ASSIGNED: Final = re.compile(r"^[ \t]*(\w+)[ \t]*[:?+]?=[ \t]*([^\n#]*)", re.MULTILINE)
_USED: Final = re.compile(r"\$[({](\w+)[)}]")
_SOURCES: Final = re.compile(r"^\w*(?:src|source)s?\w*$", re.IGNORECASE)
_OBJECTS: Final = re.compile(r"^\w*obj(?:ect)?s?\w*$", re.IGNORECASE)
_RUN: Final = re.compile(r"^run[ \t]*:[^\n]*\n((?:\t[^\n]*\n?)+)", re.MULTILINE)
_PROGRAM: Final = re.compile(r"(?:^|\s)\.{1,2}/\S+((?:[ \t]+[^\n;|&><]*)?)")
_CODE: Final = (".cu", ".cpp", ".cc", ".cxx", ".c")
_MAIN: Final = re.compile(r"\bint\s+main\s*\(")
_INCLUDED: Final = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+\.cu)"', re.MULTILINE)
_NOT_OURS: Final = ("DEBUG", "USE_MPI")  # macros of branches that are not taken


@dataclass(frozen=True)
class Recipe:
    """How a program is built and run. `sources`: all of it, in order. `lead`: the one that stands for it."""

    sources: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()
    macros: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()

    @property
    def lead(self) -> Path | None:
        """The CUDA source with `main`, else the first CUDA source."""
        cuda = [each for each in self.sources if each.suffix == ".cu"]
        return next((each for each in cuda if _MAIN.search(each.read_text(errors="replace"))), cuda[0] if cuda else None)


def recipe_of(source: Path) -> Recipe:
    """The recipe of the Makefile or the CMakeLists.txt that names a source; an empty one where there is none."""
    folders = source.parents[:_LEVELS]
    made = (read(folder / name, source) for folder in folders for name, read in _READERS if (folder / name).is_file())
    return next((each for each in made if source in each.sources), Recipe())


def without_parts(files: Iterable[Path]) -> list[Path]:
    """Files in order. A program of several sources is one, its lead; a source that another one includes is part of that."""
    found = sorted(files)
    parts: set[Path] = set()
    for each in (one for one in found if one.suffix == ".cu"):
        recipe = recipe_of(each)
        parts |= set(recipe.sources) - {recipe.lead}
        parts |= {(each.parent / name).resolve() for name in _INCLUDED.findall(each.read_text(errors="replace"))}
    return [each for each in found if each not in parts]


def _read_cmake(path: Path, source: Path) -> Recipe:
    return Recipe(*cmake.program_of(path, source))


def _read(path: Path, _: Path) -> Recipe:
    text = path.read_text(errors="replace").replace("\\\r\n", " ").replace("\\\n", " ")
    variables: dict[str, str] = {}
    for found in _ASSIGNED.finditer(text):
        name, value = found[1], _expanded(found[2].strip(), variables)
        variables[name] = f"{variables.get(name, '')} {value}".strip() if "+=" in found[0] else value
    sources = tuple(dict.fromkeys(_sources(path.parent, variables)))
    flags = [word for value in variables.values() for word in value.split()]
    folders = tuple(dict.fromkeys((path.parent / each[2:]).resolve() for each in flags if each.startswith("-I") and "$" not in each))
    macros = tuple(dict.fromkeys(each[2:] for each in flags if each.startswith("-D") and "$" not in each))
    kept = tuple(each for each in macros if each.partition("=")[0] not in _NOT_OURS)
    return Recipe(sources, folders, kept, _arguments(path, _expanded(text, variables)))


def _sources(folder: Path, variables: dict[str, str]) -> Iterator[Path]:
    """The sources that variables list, by themselves or as the objects that are made of them."""
    for name, value in variables.items():
        for file in map(Path, value.split()):
            suffixes = (file.suffix,) if _SOURCES.match(name) else _CODE if _OBJECTS.match(name) and file.suffix == ".o" else ()
            named = ((folder / file).with_suffix(each).resolve() for each in suffixes if each in _CODE)
            yield from islice((each for each in named if each.is_file()), 1)


def _expanded(text: str, variables: dict[str, str]) -> str:
    return _USED.sub(lambda found: variables.get(found[1], ""), text)


def _arguments(path: Path, text: str) -> tuple[str, ...]:
    """The arguments of the program in the target `run`, or in the script of that name."""
    script = path.parent / "run"
    block = _RUN.search(text)
    commands = block[1] if block else script.read_text(errors="replace") if script.is_file() else ""
    found = _PROGRAM.search(commands)
    try:
        words = shlex.split(found[1]) if found else []
    except ValueError:
        return ()
    return tuple(str((path.parent / each).resolve()) if (path.parent / each).is_file() else each for each in words)


def smaller_arguments(text: str, arguments: tuple[str, ...]) -> tuple[str, ...]:
    """The arguments of a program with smaller sizes. `text`: its source, which says by its names what each is."""
    return sizes.smaller_arguments([(_name(text, number), each) for number, each in enumerate(arguments, 1)], text)


def first_is_size(text: str) -> bool:
    """Whether the first argument of `main` is a size of the data, of a block, of a repetition, and no number of a kernel."""
    name = _name(text, 1)
    return bool(name) and sizes.is_measure(name)


def _name(text: str, number: int) -> str:
    """The variable that takes an argument of `main`."""
    read = rf"\b(\w+)\s*=\s*(?:\([\w\s]+\)\s*)?(?:std\s*::\s*)?(?:ato|strto|sto)\w+\s*\(\s*argv\s*\[\s*{number}\s*\]"
    found = re.search(read, text)
    return found[1] if found else ""


_READERS: Final = (*((name, _read) for name in _NAMES), (cmake.NAME, _read_cmake))
