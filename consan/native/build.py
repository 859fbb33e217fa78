"""Compiles the interposer at first use. It is cached by its source, the compiler's command and the machine."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from importlib import resources
from pathlib import Path
from typing import Final

from consan._errors import EnvironmentFailure
from consan.toolchain.cache import Cache, key

VARIABLE: Final = "CC"  # names the compiler, as for make
OPTIONS: Final = ("-std=gnu11", "-O2", "-shared", "-fPIC", "-fvisibility=hidden")
_LIBRARIES: Final = ("-lpthread", "-ldl")
_NAME: Final = "interposer.c"
_TIMEOUT: Final = 120  # seconds


def compiler() -> list[str] | None:
    """The command of a C compiler: $CC, or the system's."""
    if chosen := os.environ.get(VARIABLE):
        return shlex.split(chosen)
    found = next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)
    return [found] if found else None


def interposer() -> bytes:
    """The library. Raises EnvironmentFailure if it cannot be made."""
    command = compiler()
    if command is None:
        raise EnvironmentFailure("programs that are not Python need a C compiler, once: install cc (gcc or clang), or name one in CC")
    source = (resources.files("consan.native") / "source" / _NAME).read_text()
    name = key("interposer", platform.machine(), *command, *OPTIONS, source)
    return Cache().fetch(name, lambda: _compiled(command, source))


def _compiled(command: list[str], source: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file, target = Path(folder, _NAME), Path(folder, "interposer.so")
        file.write_text(source)
        line = [*command, *OPTIONS, "-o", str(target), str(file), *_LIBRARIES]
        try:
            done = subprocess.run(line, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise EnvironmentFailure(f"programs that are not Python need a C compiler, and {command[0]} cannot be run: {error}") from None
        if done.returncode:
            first = next((each for each in done.stderr.splitlines() if "error" in each), done.stderr.strip()[:200])
            raise EnvironmentFailure(f"{command[0]} could not compile consan's library for programs that are not Python: {first}")
        return target.read_bytes()
