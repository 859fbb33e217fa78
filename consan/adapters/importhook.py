"""Calls a function when a module is imported, at once if it already is.

A finder at the head of `sys.meta_path` lets the other finders locate the module, wraps their loader, and calls the callbacks
after `exec_module`. The module's `__loader__` and `__spec__.loader` are restored, so that no other code sees the wrapper. The
finder leaves `sys.meta_path` with the last callback. `consan run` imports no framework that the program does not import.

Not handled: `importlib.reload` (callbacks run once per `when_imported`) and loaders without `exec_module`.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Callback = Callable[[ModuleType], None]
Cancel = Callable[[], None]


class _FiringLoader(Loader):
    """The chosen loader, plus the callbacks after execution."""

    def __init__(self, inner: Any, fire: Callback) -> None:
        self._inner = inner
        self._fire = fire

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._inner.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._inner
        module.__loader__ = self._inner
        self._inner.exec_module(module)
        self._fire(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class ImportHook(MetaPathFinder):
    """The finder: the awaited modules and their callbacks."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[Callback]] = {}
        self._lock = threading.RLock()

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Locate an awaited module with the other finders, and wrap its loader."""
        if fullname not in self._waiting:
            return None
        spec = self._ask_others(fullname, path, target)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _FiringLoader(spec.loader, functools.partial(self._fire, fullname))
        return spec

    def _ask_others(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        others = (finder for finder in list(sys.meta_path) if finder is not self and hasattr(finder, "find_spec"))
        return next((spec for finder in others if (spec := finder.find_spec(fullname, path, target)) is not None), None)

    def _fire(self, name: str, module: ModuleType) -> None:
        """`name` is the imported name: a module may have another one (cuda.core takes the name of a subpackage)."""
        with self._lock:
            callbacks = self._waiting.pop(name, [])
            self._leave_if_idle()
        for callback in callbacks:
            callback(module)

    def when_imported(self, name: str, callback: Callback) -> Cancel:
        """Call `callback(module)` after `name` is imported, or now. The returned function cancels a callback that has not run."""
        module = sys.modules.get(name)
        if module is not None:
            callback(module)
            return lambda: None
        with self._lock:
            self._waiting.setdefault(name, []).append(callback)
            if self not in sys.meta_path:
                sys.meta_path.insert(0, self)
        return lambda: self._cancel(name, callback)

    def _cancel(self, name: str, callback: Callback) -> None:
        with self._lock:
            callbacks = self._waiting.get(name, [])
            if callback in callbacks:
                callbacks.remove(callback)
            if not callbacks:
                self._waiting.pop(name, None)
            self._leave_if_idle()

    def _leave_if_idle(self) -> None:
        if not self._waiting and self in sys.meta_path:
            sys.meta_path.remove(self)


_HOOK = ImportHook()
when_imported = _HOOK.when_imported
