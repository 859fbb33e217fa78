"""The programs of a CMakeLists.txt: the sources of each, and the include folders.

Commands are read in order, and variables that `set`, `file(GLOB)` and `aux_source_directory` give are expanded. Not handled: conditions
(all branches count), functions, properties, files in folders below.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

NAME: Final = "CMakeLists.txt"
_COMMENT: Final = re.compile(r"#[^\n]*")
_COMMAND: Final = re.compile(r"\b(\w+)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_WORD: Final = re.compile(r'"([^"]*)"|([^\s"]+)')
_USED: Final = re.compile(r"\$\{(\w+)\}")
_FOLDERS: Final = ("CMAKE_CURRENT_SOURCE_DIR", "CMAKE_SOURCE_DIR", "PROJECT_SOURCE_DIR", "CMAKE_CURRENT_LIST_DIR")
_PROGRAMS: Final = ("add_executable", "cuda_add_executable")
_CODE: Final = (".cu", ".cpp", ".cc", ".cxx", ".c")


def program_of(path: Path, source: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """The sources of the program that has a source, and the include folders; none, if no program has it."""
    programs, folders = _read(path)
    return next(((tuple(each), tuple(folders)) for each in programs if source in each), ((), ()))


def _read(path: Path) -> tuple[list[list[Path]], list[Path]]:
    variables = {name: [str(path.parent)] for name in _FOLDERS}
    programs: list[list[Path]] = []
    folders: list[Path] = []
    for command, text in _COMMAND.findall(_COMMENT.sub("", path.read_text(errors="replace"))):
        words = _expanded((quoted or bare for quoted, bare in _WORD.findall(text)), variables)
        if not words:
            continue
        match command.lower():
            case "set" | "list":
                name, *values = words[1:] if words[0] == "APPEND" else words
                variables[name] = [*(variables.get(name, []) if words[0] == "APPEND" else []), *values]
            case "file" if words[0].startswith("GLOB") and len(words) > 1:
                variables[words[1]] = [str(each) for pattern in words[2:] for each in _globbed(path.parent, pattern)]
            case "aux_source_directory" if len(words) > 1:
                variables[words[1]] = [str(each) for each in _globbed(path.parent, f"{words[0]}/*")]
            case "include_directories" | "target_include_directories":
                folders += [each for each in _placed(path.parent, words) if each.is_dir()]
            case name if name in _PROGRAMS:
                programs.append([each for each in _placed(path.parent, words[1:]) if each.suffix in _CODE and each.is_file()])
    return programs, list(dict.fromkeys(folders))


def _expanded(words: Iterable[str], variables: dict[str, list[str]]) -> list[str]:
    """Words with the values of variables in them: one that is a variable is all its values."""
    found: list[str] = []
    for word in words:
        whole = _USED.fullmatch(word)
        found += variables.get(whole[1], []) if whole else [_USED.sub(lambda used: " ".join(variables.get(used[1], [])), word)]
    return found


def _placed(folder: Path, words: Iterable[str]) -> list[Path]:
    return [(folder / each).resolve() for each in words]


def _globbed(folder: Path, pattern: str) -> list[Path]:
    at = Path(pattern) if Path(pattern).is_absolute() else folder / pattern
    return sorted(each.resolve() for each in at.parent.glob(at.name) if each.suffix in _CODE)
