"""consan: a shadow-memory race sanitizer for GPU kernels.

The public names are imported on first use: `import consan` loads neither a GPU driver nor a toolchain and takes almost no time.
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from consan.api import Kernel, Stream, TensorMap, check, launch
    from consan.asserting import assert_clean
    from consan.reports.model import RacyKernelError, Report

__version__ = "0.1.0"
__all__ = ["Kernel", "RacyKernelError", "Report", "Stream", "TensorMap", "assert_clean", "check", "launch"]

_HOMES = dict.fromkeys(("Kernel", "Stream", "TensorMap", "check", "launch"), "consan.api") | dict.fromkeys(
    ("RacyKernelError", "Report"), "consan.reports.model"
)
_HOMES["assert_clean"] = "consan.asserting"


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'consan' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
