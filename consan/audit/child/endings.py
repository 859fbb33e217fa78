"""How the `main` of a program ended, in words: where a signal came from, which file it could not open, what it printed last.

The runtime (source/runtime.cpp) writes the places of the calls and the names of the files between the program's own lines.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from consan.audit.host.program import expression

if TYPE_CHECKING:
    from consan.audit.host.program import HostProgram

_CALLS: Final = re.compile(r"^consan: calls((?: [0-9a-f]+)*)$", re.MULTILINE)
_UNOPENED: Final = re.compile(r"^consan: it could not open (.+)$", re.MULTILINE)
_UNSERVED: Final = re.compile(r"^.*: undefined symbol: (\w+).*$", re.MULTILINE)  # what the loader prints
_OF_A_FILE: Final = re.compile(r"(?!-)[^\s=]*(?:/|\.(?=[A-Za-z])[A-Za-z0-9]+$)[^\s=]*")
_MOST: Final = 160  # characters of a line
_OF_THE_LIBRARY: Final = re.compile(r"(std|__gnu_cxx|__cxxabiv1)::|__cxa_|_Unwind_")  # of C++, which the program has a copy of


def ending(status: int, printed: str, program: HostProgram) -> str:
    """In one line. `status`: below zero a signal. `printed`: what the program printed."""
    what = f"the host's code ended by signal {-status}" if status < 0 else f"main ended with status {status}"
    calls = _CALLS.findall(printed)
    where = _place([int(each, 16) for each in calls[-1].split()], program) if calls and status < 0 else ""
    unopened = _UNOPENED.findall(printed)
    own = [line.strip() for line in _UNOPENED.sub("", _CALLS.sub("", printed)).splitlines() if line.strip()]
    unserved = _UNSERVED.search(printed)
    if unserved is not None:
        return f"{what}{where}: it called {expression(unserved[1])}, which neither its sources nor consan have"
    more = f"; it could not open {unopened[-1]}" if unopened else f"; it printed last: {own[-1][:_MOST]}" if own else ""
    return what + where + more


def _place(calls: Sequence[int], program: HostProgram) -> str:
    """The innermost function of the program, and the function of a library that it had called."""
    called = ""
    # A call that does not return may be the last of its function: the place behind it is another's.
    for address in (*calls[:1], *(each - 1 for each in calls[1:])):
        found = program.function(address - program.base) if address >= program.base else None
        name = "" if found is None else expression(found.name)
        if name and not _OF_THE_LIBRARY.match(name):
            return f" in {name}" + (f", which had called {called}" if called else "")
        called = name or _of_library(address) or called
    return f" in {called}" if called else ""


def _of_library(address: int) -> str:
    """The nearest function that a library exports; empty: none."""
    found = (ctypes.c_void_p * 4)()  # Dl_info: file, base, name, address
    known = ctypes.CDLL(None).dladdr(ctypes.c_void_p(address), found)
    return expression(ctypes.string_at(found[2]).decode(errors="replace")) if known and found[2] else ""


def inputs_without_file(arguments: Sequence[str]) -> list[str]:
    """Those of the arguments of a program that look like the path of a file, which is not there."""
    return [each for each in arguments if _OF_A_FILE.fullmatch(each) and not PurePath(each).is_absolute()]
