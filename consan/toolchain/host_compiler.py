"""The compilers of the host, for the libraries that consan compiles at first use."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from consan._errors import EnvironmentFailure


def named_or_found(variable: str, names: Sequence[str]) -> list[str] | None:
    """The command that an environment variable gives, as for make; else the first of the names that is on the path."""
    if chosen := os.environ.get(variable):
        return shlex.split(chosen)
    found = next((path for name in names if (path := shutil.which(name))), None)
    return [found] if found else None


def compile_library(
    line: Sequence[str], files: Mapping[str, str], root: str, *, libraries: Sequence[str] = (), timeout: float, errors: tuple[str, str]
) -> bytes:
    """The shared library that a compiler makes of the file `root`, which may include the other files.

    `line`: the compiler and its options; `timeout` in seconds. Raises `EnvironmentFailure`. `errors` are the beginnings of its messages:
    for a compiler that cannot be run, and for one that fails.
    """
    cannot_run, cannot_compile = errors
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            Path(folder, name).write_text(text)
        target = Path(folder, "out.so")
        words = [*line, "-o", str(target), str(Path(folder, root)), *libraries]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=timeout, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise EnvironmentFailure(f"{cannot_run}: {error}") from None
        if done.returncode:
            first = next((each for each in done.stderr.splitlines() if "error" in each), done.stderr.strip()[:200])
            raise EnvironmentFailure(f"{cannot_compile}: {first}")
        return target.read_bytes()
