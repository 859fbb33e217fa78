"""Compiles the checker at first use and loads it. The library is cached by its source, the compiler's command and the machine."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import sys
import tempfile
from importlib import resources, util
from pathlib import Path

from consan._errors import EnvironmentFailure
from consan.checker.layouts import header
from consan.instrument.effects import cpp
from consan.toolchain.cache import Cache, key
from consan.toolchain.host_compiler import compile_library, named_or_found

_ROOT = "replay.cpp"
# With -O2 compiling takes half as much time again, and replays take as long. Nothing here catches an exception.
OPTIONS = ("-O1", "-fno-exceptions", "-std=c++17", "-shared", "-fPIC")
_TIMEOUT = 600  # seconds: zig builds its C++ library first
VARIABLE = "CXX"  # names the compiler, as for make


def compiler() -> list[str] | None:
    """The command of a C++ compiler: $CXX, the system's, or that of the ziglang wheel."""
    found = named_or_found(VARIABLE, ("c++", "g++", "clang++"))
    if found:
        return found
    return [sys.executable, "-m", "ziglang", "c++"] if util.find_spec("ziglang") else None


@functools.cache
def library() -> ctypes.CDLL:
    """The checker, compiled if the cache does not have it."""
    command = compiler()
    if command is None:
        raise EnvironmentFailure("--engine record needs a C++ compiler: install g++ or clang, or the Python package ziglang")
    try:
        return loaded(compiled(command))
    except OSError as error:
        raise EnvironmentFailure(f"--engine record: cannot compile or load the checker: {error}") from None


def compiled(command: list[str]) -> bytes:
    """The library, from the cache or from the compiler."""
    files = sources()
    parts = [item for name, text in sorted(files.items()) for item in (name, text)]
    name = key("checker", platform.machine(), *command, *OPTIONS, *parts)
    return Cache().fetch(name, lambda: compile_checker(command, files))


def loaded(data: bytes) -> ctypes.CDLL:
    """The library, from memory where the system can do that: no folder for temporary files is needed then."""
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("consan_checker"), "wb") as file:
            file.write(data)
            file.flush()
            return ctypes.CDLL(f"/proc/self/fd/{file.fileno()}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "consan_checker.so"
        path.write_bytes(data)
        return ctypes.CDLL(str(path))


def sources() -> dict[str, str]:
    """The text of each file of the checker."""
    folder = resources.files("consan.checker") / "source"
    written = {file.name: file.read_text() for file in folder.iterdir() if file.name.endswith((".hpp", ".cpp"))}
    return written | generated()


def generated() -> dict[str, str]:
    """The headers that are made from tables of Python."""
    return {"layouts.hpp": header(), "effects.hpp": cpp.header()}


def compile_checker(command: list[str], files: dict[str, str]) -> bytes:
    """The library that a compiler makes of the files."""
    errors = f"--engine record: cannot run {command[0]}", f"--engine record: {command[0]} could not compile the checker"
    return compile_library([*command, *OPTIONS], files, _ROOT, timeout=_TIMEOUT, errors=errors)


if __name__ == "__main__":  # writes the generated headers into a folder, for tools that read the sources there
    for _name, _text in generated().items():
        (Path(sys.argv[1]) / _name).write_text(_text)
