"""Child processes of a program under `consan run`: they are sanitized too, and findings are merged into one report.

An environment variable tells a child of the run. A new interpreter (subprocess, torchrun, multiprocessing's spawn and
forkserver) is armed by the `sitecustomize` in the folder `startup`, which is on PYTHONPATH; a forked child is armed already. A child
writes a mark file before its first kernel and its report when it ends. The parent merges the reports. A mark without a report makes
the run `incomplete`: that child was killed or still runs.

- A child opens its session when it first uses a kernel. A process that only imports a framework creates no context.
- `os._exit` (multiprocessing's forked workers) and SIGTERM (workers of a pool) write the report before the process ends.

Not handled: children with their own environment (`env=`), started with -I, -E or -S, or of another interpreter; forked children
on a GPU, where CUDA does not work after a fork (noted); children that call `exec` after launching kernels.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from consan import options
from consan.process.termination import before_termination, uninterrupted
from consan.reports.combine import combine
from consan.reports.json_format import ReportError, dumps, loads
from consan.reports.model import Report, plural
from consan.reports.verdict import verdict_of
from consan.session.opening import open_session
from consan.suppressions import finish

if TYPE_CHECKING:
    from consan.session.session import Session

VARIABLE: Final = "_CONSAN_CHILDREN"  # internal: set for children only
_PATH: Final = "PYTHONPATH"
_USES: Final = ("instrument", "instrument_for_framework", "prepare", "launch", "uninstrumented")  # session methods that a kernel needs


# -- the parent ---------------------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def offered(folder: Path, arguments: argparse.Namespace, device: str) -> Iterator[None]:
    """Inside the block, child processes report to the folder."""
    given = {option.name: getattr(arguments, option.name, option.default) for option in (*options.SESSION, *options.RUN)}
    if given["kernel_name"] is not None:
        given["kernel_name"] = given["kernel_name"].text
    given |= {"device": device}
    settings = {"folder": str(folder), "prefix": os.path.realpath(sys.prefix), "options": given}
    startup = str(Path(__file__).with_name("startup"))
    changed = {VARIABLE: json.dumps(settings), _PATH: os.pathsep.join(filter(None, (startup, os.environ.get(_PATH))))}
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def merged(report: Report, folder: Path) -> Report:
    """The parent's report merged with its children's."""
    read = [_read(path) for path in sorted(folder.glob("*.json"))]
    found = [one for one in read if isinstance(one, Report)]
    reasons = [one for one in read if isinstance(one, str)]
    lost = [path.stem.partition("-")[0] for path in sorted(folder.glob("*.mark"))]
    reasons += [f"child process {pid} launched kernels and did not report: it was killed, or it still runs" for pid in lost]
    if not found and not reasons:
        return report
    together = combine([report, *found])
    kept = (*together.incomplete, *reasons)
    notes = (*together.notes, *([f"{plural(len(found), 'child process', 'child processes')} included"] if found else []))
    return replace(together, incomplete=kept, verdict=verdict_of(together.findings, kept), notes=notes)


def _read(path: Path) -> Report | str:
    """A child's report, or why there is none."""
    try:
        return loads(path.read_text())
    except (OSError, ReportError) as error:
        return f"the report of child process {path.stem.partition('-')[0]} cannot be read: {error}"


# -- a child ------------------------------------------------------------------------------------------------------------------------------


class Handover:
    """Writes the session's report once, when this process ends. Until then the mark file stands for it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stem = ""
        self._session: Session | None = None

    def begin(self, session: Session) -> None:
        """Write the mark before the first kernel. Findings copied by a fork belong to the parent."""
        if self._session is None:
            self._session, self._stem = session, f"{os.getpid()}-{time.time_ns()}"
            session.take()
            with contextlib.suppress(OSError):  # the parent has ended, and nobody reads the mark
                self._mark.touch()
            before_termination(self.end)

    def end(self) -> None:
        """Write the report. SIGTERM must not interrupt it: a pool sends it to workers that are about to end."""
        with uninterrupted():
            session, self._session = self._session, None
            if session is not None:
                self._write(session.take())

    def _write(self, report: Report | None) -> None:
        with contextlib.suppress(OSError):
            if report is not None:
                partial = self._folder / f"{self._stem}.partial"
                partial.write_text(dumps(finish(report)))
                partial.replace(self._folder / f"{self._stem}.json")
            self._mark.unlink()

    @property
    def _mark(self) -> Path:
        return self._folder / f"{self._stem}.mark"


class _Backend:
    """A session's backend. Its choice is known before the session is opened."""

    def __init__(self, choice: str, opened: Callable[[], Session]) -> None:
        self.choice = choice
        self._opened = opened

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opened().backend, name)


class ChildSession:
    """Takes the place of a session, and opens one when more than its options is used."""

    def __init__(self, given: dict[str, Any]) -> None:
        texts = given["options"]
        self._options = argparse.Namespace(**texts)
        if texts["kernel_name"] is not None:
            self._options.kernel_name = options.read_kernel_filter(texts["kernel_name"])
        self.policy, self.skip_benchmarks, self.triton_arch = texts["policy"], texts["skip_benchmarks"], texts["triton_arch"]
        self.source_dir = Path(given["folder"]) / "sources"
        self.backend = _Backend(texts["device"], self._opened)
        self._real: Session | None = None
        self._pid = os.getpid()
        self._handover = Handover(Path(given["folder"]))
        self._lock = threading.RLock()
        self._notes: list[str] = []

    def note(self, text: str) -> None:
        """Keep the note until there is a session: a child that launches nothing has nothing to report."""
        if self._real is None:
            self._notes.append(text)
        else:
            self._real.note(text)

    def end(self) -> None:
        """Write the report."""
        if self._pid == os.getpid():
            self._handover.end()

    def forked(self, folder: Path) -> None:
        """Prepare this process after a fork."""
        self._pid, self._handover, self._lock = os.getpid(), Handover(folder), threading.RLock()
        if self._real is not None:
            self._real.device.lock = threading.RLock()

    def _opened(self) -> Session:
        with self._lock:
            if self._real is None:
                self._real = open_session(self._options)
                for text in self._notes:
                    self._real.note(text)
            return self._real

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        session = self._opened()
        if name in _USES:
            self._handover.begin(session)
            for text in self._notes:
                session.note(text)
        return getattr(session, name)


def arm(given: dict[str, Any]) -> None:
    """Sanitize this process's kernels. Called in a new interpreter when it imports a framework."""
    from consan import adapters

    session = ChildSession(given)
    adapters.install(session)
    atexit.register(session.end)
    _before_leaving(session.end)  # children of the fork server end with os._exit
    os.register_at_fork(after_in_child=lambda: session.forked(Path(given["folder"])))


class Forks:
    """Forked children of the `consan run` process: they report on the virtual machine; on a GPU CUDA does not work in them."""

    def __init__(self, session: Session, folder: Path) -> None:
        self._session, self._folder = session, folder
        self._following = True
        self._handover: Handover | None = None
        os.register_at_fork(after_in_parent=self._note, after_in_child=self._forked)

    def stop(self) -> None:
        """The run is over: processes forked later do not belong to it."""
        self._following = False

    def end(self) -> None:
        """In a child: write the report."""
        if self._handover is not None:
            self._handover.end()

    def _note(self) -> None:
        if self._following and not self._session.backend.survives_fork:
            self._session.note("the program forked child processes: CUDA does not work in them; the start method spawn is followed")

    def _forked(self) -> None:
        if not (self._following and self._session.backend.survives_fork):
            return
        self._session.device.lock = threading.RLock()
        self._handover = Handover(self._folder)
        _before_leaving(self.end)
        for name in _USES:
            setattr(self._session, name, _beginning(self._handover, self._session, getattr(type(self._session), name)))


def _beginning(handover: Handover, session: Session, method: Callable[..., Any]) -> Callable[..., Any]:
    def first(*args: Any, **kwargs: Any) -> Any:
        handover.begin(session)
        return method(session, *args, **kwargs)

    return first


def _before_leaving(end: Callable[[], None]) -> None:
    """Call it before `os._exit` ends this process or a fork of it."""
    leave = os._exit

    def leaving(status: int) -> None:
        try:
            end()
        finally:
            leave(status)

    os._exit = leaving  # type: ignore[assignment]
