"""The PTX virtual machine: runs (instrumented) PTX on the CPU with NumPy, as wide SIMT with a seeded schedule.

`Machine` is one device whose memory persists across launches; the rest of the package implements it. These names are imported at their
first use: on a GPU most runs need some arithmetic of this package, and no machine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .engine.machine import Machine
    from .engine.module import EntryInfo, LoadedModule, ParamInfo
    from .state.faults import BarrierState, Blocked, Fault, LaunchStats, UnsupportedInstruction
else:

    def __getattr__(name: str):
        """A name of a module below."""
        for home, names in _HOMES.items():
            if name in names:
                return getattr(import_module(f"{__name__}.{home}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_HOMES: Final = {
    "engine.machine": ("Machine",),
    "engine.module": ("EntryInfo", "LoadedModule", "ParamInfo"),
    "state.faults": ("BarrierState", "Blocked", "Fault", "LaunchStats", "UnsupportedInstruction"),
}

__all__ = ["BarrierState", "Blocked", "EntryInfo", "Fault", "LaunchStats", "LoadedModule", "Machine", "ParamInfo", "UnsupportedInstruction"]
