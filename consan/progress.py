"""One line on standard error that says how far consan's own work is: modules prepared, CTAs done. It goes when the work is done.

Nothing is written without a terminal, with `--quiet`, or in the first moments. The line is written from inside the work, at
most ten times a second, and never while the user's program runs: no thread, and no output of the program is redirected.

Not shown: what happens within one wave of CTAs on the virtual machine, and how far a launch on a GPU is.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import IO, Final

from consan.reports.formats import look

_PERIOD: Final = 0.1
_ERASE: Final = "\r\x1b[K"
_WIDTH: Final = 79


class Progress:
    """Says nothing: that of a session that nobody watches."""

    @contextlib.contextmanager
    def working(self, text: str) -> Iterator[None]:
        """Something else is done inside."""
        yield

    @contextlib.contextmanager
    def module(self, name: str) -> Iterator[None]:
        """A module is instrumented and assembled inside."""
        yield

    def ctas(self, done: int, total: int) -> None:
        """So many CTAs of the launch under way are done."""

    @contextlib.contextmanager
    def launch(self, kernel: str) -> Iterator[None]:
        """A launch is under way inside."""
        yield


SILENT: Final = Progress()


class ProgressLine(Progress):
    """The line itself. `delay`: seconds of work that pass first."""

    def __init__(self, file: IO[str], delay: float) -> None:
        self._file = file
        self._begin = time.monotonic() + delay
        self._last = 0.0
        self._shown = False
        self._modules = 0
        self._launches = 0
        self._kernel = ""

    @contextlib.contextmanager
    def module(self, name: str) -> Iterator[None]:
        """One more."""
        self._modules += 1
        with self.working(f"preparing {name}"):
            yield

    @contextlib.contextmanager
    def launch(self, kernel: str) -> Iterator[None]:
        """Name the kernel."""
        self._launches += 1
        self._kernel = kernel
        with self.working(f"running {kernel}"):
            yield

    def ctas(self, done: int, total: int) -> None:
        """So many CTAs of the kernel that was named last are done."""
        self._show(f"running {self._kernel}: {done:,} of {total:,} CTAs")

    @contextlib.contextmanager
    def working(self, text: str) -> Iterator[None]:
        """Show, and erase in the end."""
        self._show(text)
        try:
            yield
        finally:
            if self._shown:
                self._write(_ERASE)
                self._shown = False

    def _show(self, text: str) -> None:
        now = time.monotonic()
        if now < self._begin or now - self._last < _PERIOD:
            return
        self._last, self._shown = now, True
        counts = f" ({self._modules:,} prepared, launch {self._launches:,})" if self._launches > 1 else ""
        self._write(f"{_ERASE}consan: {text}"[: _WIDTH + len(_ERASE) - len(counts)] + counts)

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # a terminal that has gone must not end the run
            self._file.write(text)
            self._file.flush()


def for_terminal(delay: float = 0.5) -> Progress:
    """The progress line of a command. It is shown on a terminal, unless quiet is asked for."""
    return ProgressLine(sys.stderr, delay) if _is_shown() else SILENT


def remark(text: Callable[[], str]) -> None:
    """Print a line on a terminal only: programs that read the output do not want it."""
    if _is_shown():
        print(f"consan: {text()}", file=sys.stderr, flush=True)


def _is_shown() -> bool:
    return sys.stderr is not None and look.is_terminal(sys.stderr) and not look.quiet()
