"""Programs that call the CUDA driver, on a machine without a GPU: consan's own libcuda.so.1 (consan/libcuda) stands in for it.

It is put in front when the program imports a package that calls the driver. Code that these packages compile to machine code is compiled to
PTX:

- `Program.compile` of cuda.core makes PTX, with the lines of the source;
- the NVRTC of cuda.bindings gives PTX with the lines of the source, too (nvrtc.py).

Not handled: machine code that a program brings, and what the driver does not serve (each such call fails, and says its name).
"""

from __future__ import annotations

import functools
import importlib
import time
from types import ModuleType
from typing import Any, Final

from consan.adapters import sources
from consan.adapters.base import SessionLike
from consan.adapters.cuda_core import cuda_text, text_of, with_lines
from consan.adapters.driven import nvrtc
from consan.adapters.driven.seam import DrivenSeam
from consan.session.without_optimisation import CudaText

_PACKAGES: Final = ("cuda.bindings",)  # their import loads no driver, and their first use does


class DriverStandIn(DrivenSeam):
    """Puts the stand-in driver in front."""

    name = "cuda.core"
    title = "cuda.core"
    package = "cuda.core"
    distribution = "cuda-core"
    covers = "programs on consan's stand-in driver, and those of cuda.bindings"

    def install(self, session: SessionLike) -> None:
        """Put the driver in front once the program imports what calls it."""
        super().install(session)
        for package in _PACKAGES:
            self._when(package, lambda _: self._enter())
        self._when("cuda.bindings.nvrtc", self._compiles)
        self._when("cuda.bindings.runtime", self._waits)

    def _compiles(self, module: ModuleType) -> None:
        for name, function in nvrtc.Nvrtc(module, self._named, self.made).replaced.items():
            self._patches.set(module, name, function)

    def _waits(self, runtime: Any) -> None:
        """The binding of the CUDA runtime has a copy of that, which finds no GPU. cuda.core calls it to wait for a device."""
        driver: Any = importlib.import_module("cuda.bindings.driver")

        def synchronize() -> tuple[Any]:
            return (runtime.cudaError_t(int(driver.cuCtxSynchronize()[0])),)

        self._patches.set(runtime, "cudaDeviceSynchronize", synchronize)

    def _begin(self, core: ModuleType) -> None:
        if hasattr(core, "Program"):
            self._patches.set(core, "Program", _ptx_program(self, core.Program, core.ProgramOptions, core.ObjectCode))

    def place(self, code: str) -> sources.SourceStart | None:
        """Where the C++ source can be read."""
        return None if self._session is None else sources.place(code, sources.source_folder(self._session))

    def _named(self, code: str, name: str) -> sources.SourceStart | None:
        return None if self._session is None else nvrtc.place(code, name, sources.source_folder(self._session))

    def made(self, ptx: str, text: CudaText) -> None:
        """PTX was compiled from a text."""
        if self._session is not None:
            self._session.unoptimised.texts[ptx] = text


@functools.cache  # the class must outlive its instances
def _ptx_program(adapter: DriverStandIn, base: Any, options_type: Any, object_code: Any) -> Any:
    class PtxProgram(base):  # type: ignore[misc]
        """cuda.core's Program; what it compiles to is PTX."""

        def __init__(self, code: Any, code_type: str, options: Any = None) -> None:
            given = options if isinstance(options, options_type) or options is None else options_type(**options)
            self._consan_ptx = text_of(code) if str(code_type).lower() == "ptx" else None
            self._consan_at = adapter.place(code) if str(code_type).lower() == "c++" else None
            self._consan_code, self._consan_options = code, given
            if self._consan_at is not None:
                self._consan_code = code = self._consan_at.spread(code)
                code, given = self._consan_at.directive() + code, with_lines(given, options_type)
            super().__init__(code, code_type, given)

        def compile(self, target_type: Any, name_expressions: Any = (), logs: Any = None, **kwargs: Any) -> Any:
            """As cuda.core's; the result holds PTX."""
            if self._consan_ptx is not None:
                return object_code.from_ptx(self._consan_ptx.encode())
            began = time.process_time()
            made = super().compile("ptx", name_expressions, logs, **kwargs)
            if self._consan_at is not None:
                took, given = time.process_time() - began, self._consan_options or options_type()
                text = cuda_text(base, given, options_type, self._consan_at, self._consan_code, name_expressions, took)
                adapter.made(text_of(made.code), text)
            return made

    return PtxProgram
