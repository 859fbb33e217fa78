"""A kernel of the Python API: the text, its module, and which entry is meant."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from consan._errors import UsageError
from consan.files import read_file
from consan.launching.entries import choose_entry
from consan.launching.source import CUDA_SUFFIXES, compile_for, read_module

_PTX = re.compile(r"^[ \t]*\.version\b", re.MULTILINE)
_TEXT = re.compile(r"\n|\{|\b__global__\b|^\s*\.version\b")  # what hardly any path has


class Kernel:
    """One kernel, from CUDA C++ or PTX.

    `source` is a path (`.cu`, `.ptx`) or source text (PTX if it has a `.version` directive). `entry` names the kernel, plain or
    mangled; it may be omitted if there is only one. `rev<float, 128>` instantiates a CUDA C++ template. The rest is for CUDA C++:
    `arch` (default "sm_90a"), `defines` (macros and their values; None: defined without one), `include_dirs`, `std` (the dialect).

    Raises `UsageError` if the source is missing or does not compile, or if no kernel has this name.
    """

    def __init__(
        self,
        source: str | Path,
        entry: str | None = None,
        arch: str | None = None,
        defines: Mapping[str, Any] | None = None,
        *,
        include_dirs: Sequence[str] = (),
        std: str = "c++17",
    ) -> None:
        text, self.name = _read(source)
        suffix = Path(self.name).suffix.lower()
        is_ptx = suffix == ".ptx" or (suffix not in CUDA_SUFFIXES and _PTX.search(text) is not None)
        if is_ptx:
            self.ptx = text
        else:
            self.ptx, entry = _compile(text, entry, self.name, arch or "sm_90a", defines or {}, include_dirs, std)
        self.module = read_module(self.ptx, self.name)
        self.function = choose_entry(self.module, entry, self.name)

    @property
    def entry(self) -> str:
        """Name of the kernel in the PTX (mangled for C++)."""
        return self.function.name


def _read(source: str | Path) -> tuple[str, str]:
    if isinstance(source, str) and _TEXT.search(source) and not os.path.isfile(source):
        return source, "kernel.ptx" if _PTX.search(source) else "kernel.cu"
    if not isinstance(source, (str, os.PathLike)) or source == "":
        raise UsageError(f"{source!r} is no kernel: expected a path, or the text of CUDA C++ or PTX")
    return read_file(os.fspath(source)), os.fspath(source)


def _compile(
    text: str, entry: str | None, name: str, arch: str, defines: Mapping[str, Any], include_dirs: Sequence[str], std: str
) -> tuple[str, str | None]:
    """The PTX, and the kernel's name in it."""
    values = {macro: None if value is None else str(value) for macro, value in defines.items()}
    result, symbol = compile_for(text, entry, name=name, arch=arch, std=std, defines=values, include_dirs=tuple(include_dirs))
    return result.ptx, symbol
