"""The interposer: a shared library in C that programs which are not Python are run with."""

from __future__ import annotations

from typing import Final

from consan.toolchain.host_library import C, HostLibrary

_OPTIONS: Final = ("-std=gnu11", "-O2", "-shared", "-fPIC", "-fvisibility=hidden")
INTERPOSER: Final = HostLibrary(
    "interposer", "consan run of a program that is not Python", C, "consan.native", "interposer.c", _OPTIONS, ("-lpthread", "-ldl")
)
