"""The functions of `consan.h` for kernels that are written in Python (tutorials/guide/annotations.md), a module for each framework.

    from consan.annotations import acquire, ignore_begin, ignore_end, release          # Triton and Gluon
    from consan.annotations.numba import acquire, ignore_begin, ignore_end, release
    from consan.annotations.cute import acquire, ignore_begin, ignore_end, release     # CuTe DSL

They are comments of PTX: nothing at run time, also where consan does not run. Each module imports its framework, and this one none.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["acquire", "ignore_begin", "ignore_end", "release"]


def __getattr__(name: str) -> Any:
    """Triton's functions, for the first of the imports above."""
    if name in __all__:
        return getattr(import_module("consan.annotations.triton"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
