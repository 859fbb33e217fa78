"""consan: a shadow-memory race sanitizer for GPU kernels.

The public names are imported on first use: `import consan` loads neither a GPU driver nor a toolchain and takes almost no time.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from consan.api import Kernel, Stream, TensorMap, check, launch
    from consan.asserting import assert_clean
    from consan.reports.model import RacyKernelError, Report

__version__ = "0.1.0"
__all__ = ["Kernel", "RacyKernelError", "Report", "Stream", "TensorMap", "assert_clean", "check", "include_dir", "launch"]

_HOMES = dict.fromkeys(("Kernel", "Stream", "TensorMap", "check", "launch"), "consan.api") | dict.fromkeys(
    ("RacyKernelError", "Report"), "consan.reports.model"
)
_HOMES["assert_clean"] = "consan.asserting"


def include_dir() -> str:
    """The folder of `consan.h`, the annotations for CUDA C++: for `-I` of nvcc, or of a framework's compiler."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'consan' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
