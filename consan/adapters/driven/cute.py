"""CuTe DSL on a machine without a GPU: its host code links consan's stand-in driver in place of its runtime library.

The compiler is asked for PTX with the lines of the program, and not to use its cache, which has machine code only (CUTE_DSL_KEEP,
CUTE_DSL_LINEINFO, CUTE_DSL_NO_CACHE). A loaded cubin is taken for the PTX of the same kernels.

Not handled: host code that is compiled ahead of time, TVM-FFI, several devices, memory of torch.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final

from consan.adapters.base import SessionLike
from consan.adapters.seam import Seam, lacking
from consan.libcuda import library

_OLDEST = _NEWEST = (4, 8)
_EXECUTOR: Final = "cutlass.cutlass_dsl.cuda_jit_executor"


class CuteStandIn(Seam):
    """Runs programs of CuTe DSL on the virtual machine."""

    name = "cute"
    title = "CuTe DSL"
    package = "cutlass"
    distribution = "nvidia-cutlass-dsl"
    covers = "every kernel that a program compiles; tensors in memory of cuda.bindings or cuda.core"

    def __init__(self) -> None:
        super().__init__()
        self._folder: Path | None = None

    def install(self, session: SessionLike) -> None:
        """The compiler reads its variables when it is imported."""
        super().install(session)
        if self.available():
            self._folder = Path(tempfile.mkdtemp(prefix="consan-cute-"))
            self._set(CUTE_DSL_KEEP="ptx", CUTE_DSL_DUMP_DIR=str(self._folder), CUTE_DSL_LINEINFO="1", CUTE_DSL_NO_CACHE="1")
            self._set(CUTE_DSL_LIBS=library.file(), CUTE_DSL_ARCH=os.environ.get("CUTE_DSL_ARCH", session.backend.arch))
            self._when(_EXECUTOR, self._without_runtime)

    def remove(self) -> None:
        """Restore everything."""
        if self._session is not None and self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
        if self._patches:
            library.leave()
        super().remove()

    def _begin(self, module: ModuleType) -> None:
        """All is done where the executor is imported."""

    def _without_runtime(self, executor: Any) -> None:
        """The binding of the CUDA runtime has a driver of its own; what the executor asks it is known."""
        if not self._known(_OLDEST, _NEWEST, lacking(executor, "cuda_runtime.cudaGetDeviceCount", "cuda_runtime.cudaLibraryUnload")):
            return
        library.enter(self._open)
        assert self._folder is not None, "the package is here"
        library.keep_ptx(self._folder)
        runtime = executor.cuda_runtime
        success = runtime.cudaError_t.cudaSuccess
        known = {"cudaGetDeviceCount": lambda: (success, 1), "cudaLibraryUnload": lambda handle: (success,)}
        self._patches.set(executor, "cuda_runtime", SimpleNamespace(**{**vars(runtime), **known}))
