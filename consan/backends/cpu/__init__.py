"""The PTX virtual machine: runs (instrumented) PTX on the CPU with NumPy, as wide SIMT with a seeded schedule.

`Machine` is one device whose memory persists across launches; the rest of the package implements it.
"""

from __future__ import annotations

from .engine.machine import Machine
from .engine.module import EntryInfo, LoadedModule, ParamInfo
from .state.faults import BarrierState, Blocked, Fault, LaunchStats, UnsupportedInstruction

__all__ = ["BarrierState", "Blocked", "EntryInfo", "Fault", "LaunchStats", "LoadedModule", "Machine", "ParamInfo", "UnsupportedInstruction"]
