"""The checker: a shared library in C++, and the headers that are made for it from tables of Python."""

from __future__ import annotations

import ctypes
import functools
from typing import Final

from consan.checker.compiled.layouts import header
from consan.instrument.effects import cpp
from consan.toolchain.host_library import CXX, HostLibrary


def generated() -> dict[str, str]:
    """The headers that are made from tables of Python."""
    return {"layouts.hpp": header(), "effects.hpp": cpp.header()}


# With -O1 compiling takes two thirds of the time, and replays a tenth more. Nothing here catches an exception.
OPTIONS: Final = ("-O2", "-fno-exceptions", "-std=c++17", "-shared", "-fPIC")
CHECKER: Final = HostLibrary("checker", "the recording engine", CXX, "consan.checker", "replay.cpp", OPTIONS, generated=generated)


@functools.cache
def sources() -> dict[str, str]:
    """The text of each file of the checker."""
    return CHECKER.sources()


@functools.cache
def library() -> ctypes.CDLL:
    """The checker. Raises EnvironmentFailure."""
    return CHECKER.load()
