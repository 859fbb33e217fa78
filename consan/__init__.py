"""consan: a shadow-memory race sanitizer for GPU kernels.

The public names are imported on first use: `import consan` loads neither a GPU driver nor a toolchain and takes almost no time.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from consan import triton
    from consan._errors import ConsanError, EnvironmentFailure, NotSupported, UsageError
    from consan.api import Kernel, Multicast, Stream, Symmetric, TensorMap, Texture, check, launch
    from consan.asserting import assert_clean
    from consan.reports.model import Access, Finding, RacyKernelError, Report

__version__ = "0.2.0"
__all__ = [
    "Access",
    "ConsanError",
    "EnvironmentFailure",
    "Finding",
    "Kernel",
    "Multicast",
    "NotSupported",
    "RacyKernelError",
    "Report",
    "Stream",
    "Symmetric",
    "TensorMap",
    "Texture",
    "UsageError",
    "assert_clean",
    "check",
    "include_dir",
    "launch",
    "triton",
]

if not os.path.isdir(os.path.join(__path__[0], "instrument")):  # a checkout, which has instrument/ and reports/ beside this folder
    __path__.append(os.path.dirname(os.path.abspath(__path__[0])))

_HOMES = {
    **dict.fromkeys(("Kernel", "Multicast", "Stream", "Symmetric", "TensorMap", "Texture", "check", "launch"), "consan.api"),
    **dict.fromkeys(("Access", "Finding", "RacyKernelError", "Report"), "consan.reports.model"),
    **dict.fromkeys(("ConsanError", "EnvironmentFailure", "NotSupported", "UsageError"), "consan._errors"),
    "assert_clean": "consan.asserting",
}


def include_dir() -> str:
    """The folder of `consan.h`, the annotations for CUDA C++: for `-I` of nvcc, or of a framework's compiler."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name == "triton":
        return importlib.import_module("consan.triton")
    raise AttributeError(f"module 'consan' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
