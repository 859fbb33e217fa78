"""What both adapters for Triton share: when they are armed, what they replaced, and how all of it is undone."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from consan.adapters.base import Patches, SessionLike
from consan.adapters.importhook import when_imported
from consan.adapters.triton import harness, versions


class Seam:
    """An adapter that waits for `import triton`; `_patch` of a subclass does the rest."""

    name = "triton"
    covers = ""

    def __init__(self) -> None:
        self._session: SessionLike | None = None
        self._patches = Patches()
        self._undo: list[Callable[[], None]] = []

    def available(self) -> bool:
        """Tell whether Triton is installed."""
        return versions.installed()

    def describe(self) -> str:
        """One line for `consan doctor`."""
        return f"{versions.described()}: {self.covers}" if self.available() else "Triton is not installed"

    def install(self, session: SessionLike) -> None:
        """Take over Triton now or when it is imported."""
        if self._session is not None:
            self.remove()
        self._session = session
        self._when("triton", self._begin)

    def remove(self) -> None:
        """Put everything back."""
        while self._undo:
            self._undo.pop()()
        self._patches.undo()
        self._session = None

    def _begin(self, triton: ModuleType) -> None:
        versions.check(triton, self._open)
        if triton.knobs.runtime.interpret:
            self._open.note("TRITON_INTERPRET is set: kernels run in Triton's interpreter and are not checked")
        self._patch(triton)

    def _patch(self, triton: ModuleType) -> None:
        raise NotImplementedError

    @property
    def _open(self) -> SessionLike:
        assert self._session is not None, "nothing is replaced outside of a session"
        return self._session

    def _when(self, module: str, callback: Callable[[ModuleType], None]) -> None:
        self._undo.append(when_imported(module, callback))

    def _wrap(self, owner: Any, name: str, replacement: Callable[..., Any], *first: Any) -> None:
        """`replacement(*first, original, ...)` in place of the original; a plain function, so that it binds as a method does."""
        original = getattr(owner, name)

        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return replacement(*first, original, *args, **kwargs)

        self._patches.set(owner, name, wrapper)

    def _skip_benchmarks(self, testing: ModuleType) -> None:
        """`triton.testing` without measurements."""
        self._wrap(testing, "do_bench", harness.run_once, self._open)
        self._wrap(testing, "do_bench_cudagraph", harness.run_once, self._open)
        self._wrap(testing.Mark, "run", harness.skip_report, self._open)
