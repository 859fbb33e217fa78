"""A plugin of pytest: the checker is compiled with the sanitizers for addresses and undefined behaviour (GCC or Clang).

    LD_PRELOAD=$(c++ -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
    python -m pytest -s -p sanitized tests/record/test_checker.py
"""

from __future__ import annotations

import ctypes
import tempfile
from dataclasses import replace
from pathlib import Path

from consan.checker.compiled import build
from consan.toolchain import host_library


def loaded(data: bytes, name: str) -> ctypes.CDLL:
    """From a file, so that reports have the names of functions."""
    path = Path(tempfile.mkdtemp(prefix="consan-sanitized-"), f"{name}.so")
    path.write_bytes(data)
    return ctypes.CDLL(str(path))


OPTIONS = (*build.OPTIONS, "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
build.CHECKER = replace(build.CHECKER, options=OPTIONS)  # type: ignore[misc]
host_library.loaded = loaded
