"""What every producer of the corpus shares: the cache, processes, and whether nvcc works here."""

from __future__ import annotations

import functools
import shutil
import subprocess

from consan._errors import ConsanError
from consan.toolchain.cache import Cache, default_folder

CACHE = Cache(default_folder() / "corpus")


def run(command: list[str], environment: dict[str, str] | None = None) -> str:
    """What a command prints; ConsanError with its last words where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise ConsanError(f"{' '.join(command[:6])} failed:\n{done.stderr.strip()[-3000:]}")
    return done.stdout


@functools.lru_cache(maxsize=1)
def nvcc_version() -> str | None:
    """What nvcc says of itself, or None where it or a host compiler is absent."""
    program = shutil.which("nvcc")
    if program is None or not (shutil.which("gcc") or shutil.which("clang")):
        return None
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None
