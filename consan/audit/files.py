"""The files of an audit: which of a folder have kernels, and what belongs to each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from consan._errors import UsageError
from consan.audit.host.makefile import without_parts
from consan.audit.launch_file import SUFFIX
from consan.files import read_file

_SUFFIXES: Final = (".cu", ".py", ".ptx")
_KERNELS: Final = re.compile(r"__global__|\bload_inline\b|\bcpp_extension\b|\bModelNew\b|\btriton\.jit\b")


def sources_in(*paths: str | Path) -> list[Path]:
    """Files, and those with kernels in folders and the folders in them, in order: for `pytest.mark.parametrize`.

    Raises UsageError where there is none.
    """
    found = dict.fromkeys(each for path in paths for each in _sources(Path(path)))
    if not found:
        raise UsageError(f"no .cu, .py or .ptx file in {', '.join(map(str, paths))}")
    return list(found)


def _sources(path: Path) -> Iterable[Path]:
    if path.is_dir():
        return without_parts(each.resolve() for each in path.rglob("*") if each.is_file() and _has_kernels(each))
    if path.suffix not in _SUFFIXES:
        raise UsageError(f"{path}: expected a .cu, .py or .ptx file, or a folder")
    return [path.resolve()]


def _has_kernels(path: Path) -> bool:
    """Whether a file of a folder is one to audit: of Python modules, those that speak of kernels."""
    return path.suffix in (".cu", ".ptx") or (path.suffix == ".py" and _KERNELS.search(path.read_text(errors="replace")) is not None)


def text_of(path: Path) -> str:
    """The text of a source, in whatever encoding its comments are."""
    try:
        return read_file(str(path))
    except UsageError:
        if not path.is_file():
            raise
        return path.read_text(errors="replace")


def launches_of(path: Path) -> str | None:
    """The text of a source's launch file; None: it has none."""
    described = path.with_suffix(SUFFIX)
    return text_of(described) if path.suffix != ".py" and described.is_file() else None
