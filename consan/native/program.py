"""A program that is not Python, as the command line names it."""

from __future__ import annotations

import contextlib
import os
import stat
import struct
from typing import Final

from consan.dataclass import dataclass

_HEAD: Final = struct.Struct("<32xQ14xHH")  # of an ELF file: where its segments are described, the bytes of a description, their number
_INTERPRETER: Final = 3  # PT_INTERP: the dynamic linker's path
_OTHER_USER: Final = ((stat.S_ISUID, "setuid"), (stat.S_ISGID, "setgid"))
_MOST: Final = 1 << 16  # bytes of a file's beginning that are read
_NO_EFFECT: Final = "LD_PRELOAD has no effect there, so what it loads is not seen"


@dataclass(frozen=True)
class NativeProgram:
    """A program to run: the file, and its words; the first word is its name."""

    file: str
    words: tuple[str, ...]
    note: str = ""  # for the report
    script: str = ""  # that the file runs

    @property
    def label(self) -> str:
        """For the name of the stored run."""
        return self.script or self.file


def out_of_reach(file: str) -> str:
    """Why the interposer cannot be loaded into a program. Empty if it can, as far as the file shows."""
    with contextlib.suppress(OSError, struct.error):
        what = _other_user(file) or _static(file)
        return what and f"{file} is {what}: {_NO_EFFECT}"
    return ""


def _other_user(file: str) -> str:
    if os.getuid() == 0:  # nothing is gained, and the dynamic linker trusts the environment
        return ""
    mode = os.stat(file).st_mode
    return next((name for bit, name in _OTHER_USER if mode & bit), "")


def _static(file: str) -> str:
    with open(file, "rb") as opened:
        data = opened.read(_MOST)
    if not data.startswith(b"\x7fELF\2"):
        return ""
    at, size, count = _HEAD.unpack_from(data)
    kinds = [struct.unpack_from("<I", data, at + number * size)[0] for number in range(count)]
    return "" if _INTERPRETER in kinds else "linked statically"
