"""The PTX virtual machine: runs (instrumented) PTX on the CPU with NumPy, wide SIMT, a seeded schedule (DESIGN 4).

`Machine` is one device with memory that persists across launches; everything else in this package serves it.
"""

from __future__ import annotations

from .faults import BarrierState, Blocked, Fault, LaunchStats, UnsupportedInstruction
from .machine import Machine
from .module import EntryInfo, LoadedModule, ParamInfo

__all__ = ["BarrierState", "Blocked", "EntryInfo", "Fault", "LaunchStats", "LoadedModule", "Machine", "ParamInfo", "UnsupportedInstruction"]
