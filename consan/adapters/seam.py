"""Shared by adapters: when they are armed, what they replaced, how it is undone, and the versions they were written for.

A framework with an unknown version or unknown internals is not changed: one note says so, and its launches are listed as uninstrumented
where they can be counted. On the virtual machine a framework that needs a driver ends with one sentence (`NeedsGpu`).

Not handled: the version checks of Triton and CuPy, which end the program instead.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib import metadata
from types import ModuleType
from typing import Any

from consan._errors import NotSupported
from consan.adapters.base import Patches, SessionLike
from consan.adapters.importhook import when_imported


class Seam(ABC):
    """An adapter that waits for an import; `_begin` of a subclass does the rest."""

    name = ""
    title = ""  # as users write it
    package = ""  # what is imported
    distribution = ""  # what is installed
    covers = ""

    def __init__(self) -> None:
        self._session: SessionLike | None = None
        self._patches = Patches()
        self._undo: list[Callable[[], None]] = []
        self._variables: dict[str, str | None] = {}  # of the environment, as they were

    def available(self) -> bool:
        """Tell whether the framework is installed (without importing it)."""
        return self.version() is not None and importlib.util.find_spec(self.package.partition(".")[0]) is not None

    def version(self) -> str | None:
        """The installed version."""
        try:
            return metadata.version(self.distribution)
        except metadata.PackageNotFoundError:
            return None

    def describe(self) -> str:
        """One line for `consan doctor`."""
        return f"{self.title} {self.version()}: {self.covers}" if self.available() else f"{self.title} is not installed"

    def install(self, session: SessionLike) -> None:
        """Patch the framework now or when it is imported."""
        if self._session is not None:
            self.remove()
        self._session = session
        self._when(self.package, self._begin)

    def remove(self) -> None:
        """Restore everything."""
        while self._undo:
            self._undo.pop()()
        self._patches.undo()
        for name, value in self._variables.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        self._variables.clear()
        self._session = None

    @abstractmethod
    def _begin(self, module: ModuleType) -> None:
        """Patch the framework, which has been imported."""

    @property
    def _open(self) -> SessionLike:
        assert self._session is not None, "nothing is replaced outside of a session"
        return self._session

    def _when(self, module: str, callback: Callable[[ModuleType], None]) -> None:
        self._undo.append(when_imported(module, callback))

    def _set(self, **variables: str) -> None:
        """Set variables of the environment."""
        for name, value in variables.items():
            self._variables.setdefault(name, os.environ.get(name))
            os.environ[name] = value

    def _wrap(self, owner: Any, name: str, replacement: Callable[..., Any], *first: Any) -> None:
        """Replace the original by `replacement(*first, original, ...)`, a plain function, so that it binds as a method."""
        self._patches.set(owner, name, self._wrapped(getattr(owner, name), replacement, *first))

    @staticmethod
    def _wrapped(original: Callable[..., Any], replacement: Callable[..., Any], *first: Any) -> Callable[..., Any]:
        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return replacement(*first, original, *args, **kwargs)

        return wrapper

    def _known(self, oldest: tuple[int, int], newest: tuple[int, int], missing: list[str]) -> bool:
        """Whether this version may be patched. If not, a note says why."""
        version = self.version() or "of unknown version"
        found = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
        if missing or found < oldest:
            what = f"; it lacks {', '.join(missing)}" if missing else ""
            tried = " to ".join(dict.fromkeys(".".join(map(str, each)) for each in (oldest, newest)))
            self._open.note(
                f"{self.title} {version} is not known to consan, which was tried with {tried}: its kernels are not checked{what}"
            )
            return False
        if found > newest:
            self._open.note(f"{self.title} {version} is newer than {'.'.join(map(str, newest))}, the newest that consan was tried with")
        return True


class NeedsGpu(Seam):
    """On the virtual machine: the first use of the device raises with one sentence."""

    def _begin(self, module: ModuleType) -> None:
        for owner, name in self._entries(module):
            self._wrap(owner, name, self._refuse)

    @abstractmethod
    def _entries(self, module: ModuleType) -> list[tuple[Any, str]]:
        """The functions that every use of the device needs: (owner, attribute)."""

    def _refuse(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        raise NotSupported(
            f"{self.title} needs a GPU: with --device cpu, consan runs programs of CuPy, Triton, Numba, CuTe DSL, tilelang, Warp and"
            " cuda.core, and single kernels"
        )


def lacking(owner: Any, *names: str) -> list[str]:
    """The dotted names that the owner lacks."""
    return [name for name in names if not _has(owner, name)]


def _has(owner: Any, dotted: str) -> bool:
    for part in dotted.split("."):
        if not hasattr(owner, part):
            return False
        owner = getattr(owner, part)
    return True
