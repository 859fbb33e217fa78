"""The `atexit` functions of a program that consan runs: they run in its session, before the report, since they may launch kernels.

Not handled: functions that C registers (`Py_AtExit`), and objects that the interpreter frees when it ends.
"""

from __future__ import annotations

import atexit
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from consan._errors import ConsanError

_OWN: Final = str(Path(__file__).resolve().parents[1])


class ExitFunctions:
    """Functions that the program has registered since this was made. Those of consan's own run when the interpreter ends."""

    def __init__(self) -> None:
        self._kept: list[tuple[Callable[..., object], tuple[Any, ...], dict[str, Any]]] = []
        self._plain = atexit.register, atexit.unregister
        atexit.register, atexit.unregister = self._register, self._unregister

    def _register(self, func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        if sys._getframe(1).f_code.co_filename.startswith(_OWN):
            return self._plain[0](func, *args, **kwargs)
        if not callable(func):
            raise TypeError("the first argument must be callable")
        self._kept.append((func, args, kwargs))
        return func

    def _unregister(self, func: Callable[..., Any], /) -> None:
        self._kept = [each for each in self._kept if each[0] != func]
        self._plain[1](func)

    def run(self) -> list[BaseException]:
        """Call them, the last one first, and end. Gives the exceptions that have ended some of them."""
        raised: list[BaseException] = []
        while self._kept:
            func, args, kwargs = self._kept.pop()
            try:
                func(*args, **kwargs)
            except BaseException as error:  # as the interpreter: one does not keep the others from running
                raised.append(error)
                if isinstance(error, ConsanError):
                    print(f"consan: error: {error}", file=sys.stderr)
                elif not isinstance(error, SystemExit):
                    print(f"Exception ignored in atexit callback: {func!r}", file=sys.stderr)
                    traceback.print_exception(error)
        atexit.register, atexit.unregister = self._plain
        return [each for each in raised if not isinstance(each, SystemExit)]
