"""Checks that the installed Triton has the internals that the adapters use (written for 3.6 to 3.9).

An older Triton, or one that lacks them, raises `NotSupported` with one line. A newer one that has them all is used, with a note.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from types import ModuleType
from typing import Any

from consan import late
from consan._errors import NotSupported
from consan.adapters.base import SessionLike

OLDEST, NEWEST = (3, 6), (3, 9)
# Module -> the names in it that an adapter replaces or reads.
_SEAMS = {
    "triton.compiler.compiler": ("CompiledKernel._init_handles",),
    "triton.runtime": ("driver.set_active", "driver._active"),
    "triton.runtime.jit": ("JITFunction.run",),
    "triton.runtime.autotuner": ("Autotuner.run", "Autotuner.prune_configs"),
    "triton.testing": ("do_bench", "do_bench_cudagraph", "Mark.run"),
}


def installed() -> bool:
    """Whether Triton is installed, without importing it."""
    return importlib.util.find_spec("triton") is not None


def described() -> str:
    """Its name and version, without importing it."""
    try:
        return f"Triton {late.metadata.version('triton')}"
    except late.metadata.PackageNotFoundError:
        return "Triton"


def check(triton: ModuleType, session: SessionLike) -> None:
    """Raises NotSupported unless the adapters support this Triton."""
    found = tuple(int(number) for number in re.findall(r"\d+", triton.__version__)[:2])
    missing = [f"{module}.{name}" for module, names in _SEAMS.items() for name in names if not _has(module, name)]
    if found < OLDEST or missing:
        what = f"; it lacks {', '.join(missing)}" if missing else ""
        wanted = f"Triton {_dotted(OLDEST)} to {_dotted(NEWEST)}"
        raise NotSupported(f"Triton {triton.__version__} is not supported by consan's adapter, which needs {wanted}{what}")
    if found > NEWEST:
        session.note(f"Triton {triton.__version__} is newer than {_dotted(NEWEST)}, the newest that consan was tried with")


def _has(module: str, name: str) -> bool:
    value: Any = importlib.import_module(module)
    for part in name.split("."):
        value = getattr(value, part, _MISSING)
    return value is not _MISSING


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


class _Missing:
    def __getattr__(self, name: str) -> _Missing:
        return self


_MISSING: Any = _Missing()
