"""Limits of the process of a file: time, memory, the size of files, processes, and where it writes.

Contained: memory beyond a limit, files beyond a size, writes outside of its folder and the cache (with Landlock, where the kernel has
it), processes that it leaves behind. Not contained: reading files, the network, and code that searches the process for consan's own
objects.
"""

from __future__ import annotations

import ctypes
import os
import resource
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

TAKEN: Final = 75  # status of a server that finds no room for the memory of the machine: start it again
MOST_FILE: Final = 1 << 30
MOST_PROCESSES: Final = 64
_CREATE, _ADD, _RESTRICT = 444, 445, 446  # landlock_create_ruleset and its companions
_NO_NEW_PRIVILEGES, _SUBREAPER = 38, 36
_PATH_BENEATH: Final = 1
# LANDLOCK_ACCESS_FS_*: write a file, remove and make entries, refer, truncate.
_WRITES: Final = 0x2 | sum(1 << bit for bit in range(4, 13))
_ADDED: Final = {2: 1 << 13, 3: 1 << 14}  # what later versions know besides


def limit(memory: int, seconds: float, writable: Iterable[Path]) -> None:
    """Limit this process and its children. `memory`: bytes besides those that it has already."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    _set(resource.RLIMIT_AS, pages * resource.getpagesize() + memory)
    _set(resource.RLIMIT_FSIZE, MOST_FILE)
    limit_time(seconds)
    confine(writable)


def limit_time(seconds: float) -> None:
    """All limits that the driver of a GPU lets a process have: it reserves addresses without end, and writes where it wants."""
    _set(resource.RLIMIT_CORE, 0)
    _set(resource.RLIMIT_CPU, int(seconds) + 10)


def _set(which: int, value: int) -> None:
    _, most = resource.getrlimit(which)
    value = value if most == resource.RLIM_INFINITY else min(value, most)
    resource.setrlimit(which, (value, value))


def confine(writable: Iterable[Path]) -> bool:
    """Refuse writes outside of folders. False where the kernel has no Landlock."""
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE, None, 0, 1)
    if version < 1:
        return False
    handled = _WRITES | sum(bit for since, bit in _ADDED.items() if version >= since)
    given = struct.pack("<Q", handled)
    rules = libc.syscall(_CREATE, given, len(given), 0)
    if rules < 0:
        return False
    for path in writable:
        _allow(libc, rules, path, handled)
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    done: bool = libc.syscall(_RESTRICT, rules, 0) == 0
    os.close(rules)
    return done


def _allow(libc: ctypes.CDLL, rules: int, path: Path, handled: int) -> None:
    folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    of_file = 0x2 | (1 << 14 & handled)
    beneath = struct.pack("<Qi", handled if path.is_dir() else of_file, folder)
    libc.syscall(_ADD, rules, _PATH_BENEATH, beneath, 0)
    os.close(folder)


def adopt() -> None:
    """Let orphans of this process's children become its own children."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def descendants(root: int) -> list[int]:
    """The processes below one."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue
    found: list[int] = []
    below = {root}
    while below:
        below = {each for each, parent in parents.items() if parent in below and each not in found}
        found += below
    return found
