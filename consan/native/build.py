"""Compiles the interposer at first use. It is cached by its source, the compiler's command and the machine."""

from __future__ import annotations

import platform
from importlib import resources
from typing import Final

from consan._errors import EnvironmentFailure
from consan.toolchain.cache import Cache, key
from consan.toolchain.host_compiler import compile_library, named_or_found

VARIABLE: Final = "CC"  # names the compiler, as for make
OPTIONS: Final = ("-std=gnu11", "-O2", "-shared", "-fPIC", "-fvisibility=hidden")
_LIBRARIES: Final = ("-lpthread", "-ldl")
_NAME: Final = "interposer.c"
_TIMEOUT: Final = 120  # seconds


def compiler() -> list[str] | None:
    """The command of a C compiler: $CC, or the system's."""
    return named_or_found(VARIABLE, ("cc", "gcc", "clang"))


def interposer() -> bytes:
    """The library. Raises EnvironmentFailure if it cannot be made."""
    command = compiler()
    if command is None:
        raise EnvironmentFailure("programs that are not Python need a C compiler, once: install cc (gcc or clang), or name one in CC")
    files = sources()
    parts = [item for name, text in sorted(files.items()) for item in (name, text)]
    name = key("interposer", platform.machine(), *command, *OPTIONS, *parts)
    return Cache().fetch(name, lambda: compiled(command, files))


def sources() -> dict[str, str]:
    """The text of each file of the interposer."""
    folder = resources.files("consan.native") / "source"
    return {file.name: file.read_text() for file in folder.iterdir() if file.name.endswith((".c", ".h"))}


def compiled(command: list[str], files: dict[str, str]) -> bytes:
    """The library that a compiler makes of the files. Raises EnvironmentFailure."""
    errors = (
        f"programs that are not Python need a C compiler, and {command[0]} cannot be run",
        f"{command[0]} could not compile consan's library for programs that are not Python",
    )
    return compile_library([*command, *OPTIONS], files, _NAME, libraries=_LIBRARIES, timeout=_TIMEOUT, errors=errors)
