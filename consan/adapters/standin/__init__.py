"""A small stand-in for CuPy, so that a RawKernel script runs on the CPU's virtual machine.

It is importable as `cupy` only while a session on the CPU has it installed, and the report says so. It has the part of CuPy's API
that tutorials and common RawKernel scripts use: arrays (results computed by NumPy, in the virtual machine's memory), `cupy.random`,
RawKernel, RawModule, ElementwiseKernel, ReductionKernel, streams, events. Anything else ends in one clear sentence (`Unsupported`).

CuPy itself is not put on the stand-in driver (consan/libcuda). It would have to be installed (230 MB); this needs NumPy alone. And its
wheel has kernels as machine code, and calls libraries of such, which the virtual machine cannot run. CuPy 14.2 was tried, with PTX asked
for and its copies of the CUDA runtime led to consan's: kernels and arithmetic run, and a launch takes as long as here. Sorts (Thrust),
products (cuBLAS), random numbers (cuRAND) and transforms (cuFFT) end in errors. Sums, maxima and scans by CUB, and `default_rng`, give
wrong numbers and say nothing; the former are right with `CUPY_ACCELERATORS=` alone.

Not handled: replacing a CuPy that the program imported before the session began (noted in the report).
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from consan import late
from consan._errors import NotSupported
from consan.adapters.base import SessionLike

_PACKAGES = ("cupy", "cupyx")


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] in _PACKAGES


class _Finder(MetaPathFinder, Loader):
    """Offers the stand-in's modules under CuPy's names, building them at the first import."""

    def __init__(self) -> None:
        self._modules: dict[str, ModuleType] = {}

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if not _is_ours(fullname):
            return None
        if not self._modules:
            self._modules = importlib.import_module("consan.adapters.standin.modules").build()
        if fullname not in self._modules:
            raise _MissingModuleError(fullname)
        return ModuleSpec(fullname, self, origin="consan's CPU stand-in", is_package=hasattr(self._modules[fullname], "__path__"))

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._modules[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        """The module was built whole."""


class _MissingModuleError(NotSupported, ImportError):
    """An import of a part of CuPy that the stand-in does not have."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not part of consan's CPU stand-in for CuPy; run on a GPU (--device gpu), or avoid it in this script")


class CupyStandIn:
    """Serves `import cupy` with the stand-in."""

    name = "cupy"

    def __init__(self) -> None:
        self._finder: _Finder | None = None

    def available(self) -> bool:
        """Always: it needs nothing but NumPy."""
        return True

    def describe(self) -> str:
        """One line for `consan doctor`."""
        return "stand-in for CuPy's arrays, random numbers, RawKernel, RawModule, ElementwiseKernel, ReductionKernel"

    def install(self, session: SessionLike) -> None:
        """Offer `cupy` from now on."""
        if self._finder is not None:
            self.remove()
        if "cupy" in sys.modules:
            session.note("CuPy was imported before consan was installed: its kernels run on the GPU and are not checked")
            return
        machine: Any = getattr(session.backend, "machine", session.backend)
        late.standin_context.enter(late.standin_context.StandinContext(session, machine))
        self._finder = _Finder()
        sys.meta_path.insert(0, self._finder)

    def remove(self) -> None:
        """Take it away; a later `import cupy` finds the real one."""
        if self._finder is None:
            return
        sys.meta_path.remove(self._finder)
        self._finder = None
        for name in [name for name in sys.modules if _is_ours(name)]:
            del sys.modules[name]
        late.standin_context.leave()
