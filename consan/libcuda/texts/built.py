"""The CUDA C++ of a module that nvcc has built into a program: the file that its PTX names, if it is still the text that was compiled.

It is, if nvcc makes the same instructions of it here. Else the file has changed, or the program was built with options that change the
kernels (`-D`, `-std`), or by another version of nvcc: then there is no text, and the reason says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from consan._errors import UsageError
from consan.libcuda.texts.device_runtime import with_device_runtime
from consan.session.without_optimisation import CudaText, WithoutOptimisation, processor_time
from consan.toolchain.nvcc import compile_file, under_names_of

_FILE: Final = re.compile(r'^\s*\.file\s+\d+\s+"((?:[^"\\]|\\.)*)"', re.MULTILINE)
_TARGET: Final = re.compile(r"^\s*\.target\s+(sm_\w+)", re.MULTILINE)
_MANGLED: Final = re.compile(r"\.entry\s+_Z")  # a kernel of C++
_SUFFIX: Final = ".cu"
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_PLACES: Final = re.compile(r"^\s*\.(?:file|loc|version|target)\b")
_START: Final = 1.0  # seconds of the processor that nvcc takes for a small file
_LATER: Final = 60.0  # seconds that nvcc may take for a text whose first compilation was quick enough


def know_source(known: WithoutOptimisation, ptx: str, built: str) -> None:
    """Keep what finds the text of a module, if its PTX names one. `built`: the PTX as it was built; `ptx`: as the session knows it."""
    named = _FILE.findall(built)
    if any(each.endswith(_SUFFIX) for each in named) or (not named and _MANGLED.search(built)):
        known.origins[ptx] = partial(_text_of, built)


def _text_of(ptx: str, seconds: float) -> CudaText:
    """The text that PTX was compiled from. Raises `UsageError`: it is not known, or takes nvcc longer than `seconds`."""
    named = [each for each in _FILE.findall(ptx) if each.endswith(_SUFFIX)]
    if not named:
        raise UsageError("its PTX names no file (nvcc -lineinfo)")
    path = Path(named[0])
    target = _TARGET.search(ptx)
    if target is None or not path.is_file():
        raise UsageError(f"{path} is not there")

    def compiled(text: str, optimised: bool, *, own: str, seconds: float = _LATER) -> str:
        changed = None if text == own else text
        return with_device_runtime(under_names_of(ptx, compile_file(path, target[1], optimised=optimised, seconds=seconds, text=changed)))

    own, began = path.read_text(errors="replace"), processor_time()
    made, took = compiled(own, optimised=True, own=own, seconds=seconds), processor_time() - began
    if list(_instructions(made)) != list(_instructions(with_device_runtime(ptx))):
        raise UsageError(
            f"nvcc makes another kernel of {path.name} here: it was built from another text, by another version, or with options that "
            "NVCC_APPEND_FLAGS can name"
        )
    return CudaText(str(path), 1, own, partial(compiled, own=own), max(took - _START, 0.0))


def _instructions(ptx: str) -> Iterator[str]:
    """The lines of PTX, but for comments and the places of the source."""
    for line in _COMMENT.sub("", ptx).splitlines():
        words = " ".join(line.split())
        if words and not _PLACES.match(words):
            yield words
