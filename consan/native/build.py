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
    source = (resources.files("consan.native") / "source" / _NAME).read_text()
    name = key("interposer", platform.machine(), *command, *OPTIONS, source)
    return Cache().fetch(name, lambda: compiled(command, source))


def compiled(command: list[str], source: str) -> bytes:
    """The library that a compiler makes of a source. Raises EnvironmentFailure."""
    errors = (
        f"programs that are not Python need a C compiler, and {command[0]} cannot be run",
        f"{command[0]} could not compile consan's library for programs that are not Python",
    )
    return compile_library([*command, *OPTIONS], {_NAME: source}, _NAME, libraries=_LIBRARIES, timeout=_TIMEOUT, errors=errors)
