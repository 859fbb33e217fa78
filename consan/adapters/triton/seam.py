"""Shared by both adapters for Triton: which Triton they take, and `triton.testing` without measurements."""

from __future__ import annotations

from abc import abstractmethod
from types import ModuleType

from consan.adapters import seam
from consan.adapters.triton import harness, versions


class TritonSeam(seam.Seam):
    """An adapter that waits for `import triton`; `_patch` of a subclass does the rest."""

    name = "triton"
    title = "Triton"
    package = "triton"

    def available(self) -> bool:
        """Tell whether Triton is installed."""
        return versions.installed()

    def describe(self) -> str:
        """One line for `consan doctor`."""
        return f"{versions.described()}: {self.covers}" if self.available() else "Triton is not installed"

    def _begin(self, triton: ModuleType) -> None:
        versions.check(triton, self._open)
        if triton.knobs.runtime.interpret:
            self._open.note("TRITON_INTERPRET is set: kernels run in Triton's interpreter and are not checked")
        self._patch(triton)

    @abstractmethod
    def _patch(self, triton: ModuleType) -> None:
        """Patch Triton, whose version is known."""

    def _skip_benchmarks(self, testing: ModuleType) -> None:
        """`triton.testing` without measurements."""
        self._wrap(testing, "do_bench", harness.run_once, self._open)
        self._wrap(testing, "do_bench_cudagraph", harness.run_once, self._open)
        self._wrap(testing.Mark, "run", harness.skip_report, self._open)
