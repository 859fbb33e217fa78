"""Child processes of a program under `consan run`: they are sanitized too, and findings are merged into one report.

An environment variable marks a process as a child of the run. A new interpreter (subprocess, torchrun, multiprocessing's spawn and
forkserver) is armed by the `sitecustomize` in the folder `startup`, which is on PYTHONPATH; a forked child is armed already. A child
writes a mark file before its first kernel, what it has found as it finds it, and its report when it ends. The parent merges the reports. A
mark that is left makes the run `incomplete`: that child was killed or still runs. The process of `consan run` itself does the same, for its
supervisor (supervisor.py).

- A child opens its session when it first uses a kernel. A process that only imports a framework creates no context.
- `os._exit` (multiprocessing's forked workers), `os.execv` and SIGTERM (workers of a pool) write the report before the process ends.
  A Python process that takes the place of this one is followed as a child is.

Not handled: children with their own environment (`env=`), started with -I, -E or -S, or of another interpreter; forked children
on a GPU, where CUDA does not work after a fork (noted); errors that end a child which imports its framework in the function that it runs.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from consan import late
from consan.dataclass import dataclass
from consan.native.python.interpreters import VARIABLE, followed
from consan.process.program import ProgramEnd
from consan.process.termination import before_termination, uninterrupted
from consan.reports.counts import plural
from consan.reports.formats.json_format import ReportError, dumps, loads
from consan.reports.model import Report
from consan.reports.verdict.combination import combine
from consan.reports.verdict.conclusion import assemble, with_gaps
from consan.session.planning.options import SessionOptions
from consan.session.planning.switches import SWITCHES
from consan.session.session_options import open_session
from consan.session.spent import spent
from consan.suppressions import finish

if TYPE_CHECKING:
    from consan.session.session import Session

_LONGEST_WAIT: Final = 2.0  # seconds for another thread's launch, at the end
_STORING: Final = {True: 10, False: 100}  # storing takes at most one part in so many of the process's time: with a new finding, without
FIRST_STORED: Final = 1.0  # seconds until what was launched on a GPU is stored for the first time: that takes one part in 100 of it
_USES: Final = ("instrument", "instrument_for_framework", "prepare", "launch", "uninstrumented")  # session methods that a kernel needs


# -- the parent ---------------------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def offered(folder: Path, options: SessionOptions) -> Iterator[None]:
    """Inside the block, child processes report to the folder."""
    settings = {"folder": str(folder), "prefix": os.path.realpath(sys.prefix), "options": options.stored()}
    changed = followed(os.environ, json.dumps(settings))
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


def merged(report: Report, folder: Path, own: str = "") -> Report:
    """The parent's report merged with its children's. `own`: the stem of the parent's own files, which its report replaces."""
    stored = _stored(folder, own)
    reasons = [*stored.reasons, *(_lost(stem, folder) for stem in stored.lost)]
    if not stored.reports and not reasons:
        return report
    findings, between = late.processes.compared(folder)
    together = combine([report, *stored.reports, *([assemble(device="", findings=findings)] if findings else [])])
    reasons += between
    number = len(stored.reports)
    notes = (*together.notes, *([f"{plural(number, 'child process', 'child processes')} included"] if number else []))
    return with_gaps(together, reasons, notes=notes)


def left(folder: Path, pid: int, end: str, seed: int) -> Report:
    """The report of what the processes of a run have stored, when the program's own has not reported at its end. `end`: how it ended."""
    stored = _stored(folder)
    own = [stem for stem in stored.lost if _pid(stem) == str(pid)]
    reasons = [*stored.reasons, *(_lost(stem, folder) for stem in stored.lost if stem not in own)]
    if own or not stored.reports:
        reasons.append(f"{end}: what it launched since it last stored its findings is not in this report")
    return with_gaps(combine(stored.reports or [assemble(device="", why_nothing=end, seed=seed)]), reasons)


@dataclass(frozen=True)
class _Stored:
    """The reports that the processes of a run have left in its folder."""

    reports: list[Report]
    reasons: list[str]  # why others cannot be read
    lost: list[str]  # the stems of processes that have not ended as they should


def _stored(folder: Path, own: str = "") -> _Stored:
    read = [_read(path) for path in sorted(folder.glob("*.json")) if path.stem != own]
    reports, reasons = [one for one in read if isinstance(one, Report)], [one for one in read if isinstance(one, str)]
    return _Stored(reports, reasons, [path.stem for path in sorted(folder.glob("*.mark")) if path.stem != own])


def _lost(stem: str, folder: Path) -> str:
    what = "did not report at its end" if (folder / f"{stem}.json").exists() else "did not report"
    return f"child process {_pid(stem)} launched kernels and {what}: it was killed, or it still runs"


def _pid(stem: str) -> str:
    return stem.partition("-")[0]


def _read(path: Path) -> Report | str:
    """A child's report, or why there is none."""
    try:
        return loads(path.read_text())
    except (OSError, ReportError) as error:
        return f"the report of child process {path.stem.partition('-')[0]} cannot be read: {error}"


# -- a child ------------------------------------------------------------------------------------------------------------------------------


class Handover:
    """Writes the session's report when this process ends, and what it has found until then. Until the end there is a mark file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.stem = ""
        self._session: Session | None = None
        self._pid = os.getpid()
        self.next_store = dict.fromkeys(_STORING, 0.0)  # when what was found may be stored again

    def begin(self, session: Session) -> None:
        """Write the mark before the first kernel. Findings copied by a fork belong to the parent."""
        if self._session is None:
            self._session, self.stem = session, f"{os.getpid()}-{time.time_ns()}"
            session.take()
            session.news.on_judged, self._began = self._store, time.monotonic()
            with contextlib.suppress(OSError):  # the parent has ended, and nobody reads the mark
                self._mark.touch()
            before_termination(self.end)

    @contextlib.contextmanager
    def kept(self, session: Session) -> Iterator[None]:
        """Inside the block this process may end at any time: what the session has found until then is stored."""
        saved = os._exit, os.execv, os.execve
        self.begin(session)
        before_leaving(self.end, lambda: self.begin(session))
        try:
            yield
        finally:
            os._exit, os.execv, os.execve = saved
            self._session, session.news.on_judged = None, None

    def end(self) -> None:
        """Write the report. SIGTERM must not interrupt it: a pool sends it to workers that are about to end.

        If another thread has the device for long, what was stored stands, and so does the mark.
        """
        lock = self._session.device.lock if self._session is not None else None
        if lock is None or self._pid != os.getpid() or not lock.acquire(timeout=_LONGEST_WAIT):
            return
        try:
            with uninterrupted(), contextlib.suppress(OSError):  # a full disk: the mark shows it
                session, self._session = self._session, None
                if session is not None:
                    self._finish(session)
        finally:
            lock.release()

    def _finish(self, session: Session) -> None:
        session.news.on_judged = None
        session.watch.cut_off()
        followed = vars(session).get("followed")
        if followed is not None and (log := followed.log) is not None:
            log.save(self._folder / self.stem)
        self._write(session.take())
        self._mark.unlink(missing_ok=True)

    def _store(self, new: bool) -> None:
        """Write what was found so far. Rarely, if that takes long: the process spends little of its time with it. `new`: a finding is.
        Else nobody waits for it beside a GPU."""
        session = self._session
        if session is None or self._pid != os.getpid() or time.monotonic() < self.next_store[new]:
            return
        if new or session.backend.work is None:
            self._store_now(session.so_far)
        elif time.monotonic() > self._began + FIRST_STORED:
            self.next_store = {**self.next_store, False: math.inf}
            threading.Thread(target=self._store_aside, args=(session,), daemon=True, name="consan-reports").start()

    def _store_aside(self, session: Session) -> None:
        with SWITCHES.often(), session.device.lock:
            if self._session is session:
                self._store_now(functools.partial(session.so_far, counts_all=False))

    def _store_now(self, report: Callable[[], Report]) -> None:
        began = time.monotonic()
        with contextlib.suppress(OSError):
            self._write(report())
        now = time.monotonic()
        self.next_store = {each: now + share * (now - began) for each, share in _STORING.items()}

    def _write(self, report: Report | None) -> None:
        if report is not None:
            partial = self._folder / f"{self.stem}.partial"
            partial.write_text(dumps(finish(replace(report, cost=spent()))))
            partial.replace(self._folder / f"{self.stem}.json")

    @property
    def _mark(self) -> Path:
        return self._folder / f"{self.stem}.mark"


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
        self.options = SessionOptions.restored(given["options"])
        self.policy = self.options.policy
        self.source_dir = Path(given["folder"]) / "sources"
        self.backend = _Backend(self.options.device, self._opened)
        self._real: Session | None = None
        self._pid, self._handover = os.getpid(), Handover(Path(given["folder"]))
        self._lock = threading.RLock()
        self._notes: list[str] = []

    def here(self) -> Any:
        """The session for the current context: this one, where that is the session whose place it takes."""
        return self if (found := self._opened().here()) is self._real else found

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

    def fails(self, reasons: list[str]) -> None:
        """The process ends by an error."""
        if reasons:
            self._handover.begin(self._opened())
            self._opened().watch.reasons |= dict.fromkeys(reasons)

    def forked(self, folder: Path) -> None:
        """Prepare this process after a fork."""
        self._pid, self._handover, self._lock = os.getpid(), Handover(folder), threading.RLock()
        if self._real is not None:
            self._real.device.lock = threading.RLock()

    def _opened(self) -> Session:
        with self._lock:
            if self._real is None:
                self._real = open_session(self.options)
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


def _noting_failures(choice: Callable[[], str], note: Callable[[list[str]], None]) -> None:
    """Let an exception that ends this process, one of multiprocessing, be a reason of its report, if consan may be its cause."""
    run = BaseProcess.run

    def noting(process: BaseProcess) -> None:
        try:
            run(process)
        except Exception as error:
            note(ProgramEnd(1, uncaught=(error,)).cut_short(replaced=choice() == "cpu", what="a process of the program"))
            raise

    BaseProcess.run = noting  # type: ignore[method-assign,assignment]


def arm(given: dict[str, Any]) -> None:
    """Sanitize this process's kernels. Called in a new interpreter when it imports a framework."""
    session = ChildSession(given)
    late.adapters.install(session)
    _noting_failures(lambda: session.backend.choice, session.fails)
    atexit.register(session.end)
    before_leaving(session.end)  # children of the fork server end with os._exit
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

    def _fails(self, reasons: list[str]) -> None:
        if reasons and self._handover is not None:
            self._handover.begin(self._session)
            self._session.watch.reasons |= dict.fromkeys(reasons)

    def _note(self) -> None:
        if self._following and not self._session.backend.survives_fork:
            self._session.note("the program forked child processes: CUDA does not work in them; the start method spawn is followed")

    def _forked(self) -> None:
        if not (self._following and self._session.backend.survives_fork):
            return
        self._session.device.lock = threading.RLock()
        self._handover = Handover(self._folder)
        _noting_failures(lambda: self._session.backend.choice, self._fails)
        before_leaving(self.end)
        for name in _USES:
            setattr(self._session, name, _beginning(self._handover, self._session, getattr(type(self._session), name)))


def _beginning(handover: Handover, session: Session, method: Callable[..., Any]) -> Callable[..., Any]:
    def first(*args: Any, **kwargs: Any) -> Any:
        handover.begin(session)
        return method(session, *args, **kwargs)

    return first


def before_leaving(end: Callable[[], None], resume: Callable[[], None] = lambda: None) -> None:
    """Call `end` before `os._exit` or `exec` ends this process or a fork of it. `resume`: the call has failed, and the process goes on."""

    def leaving(leave: Callable[..., Any]) -> Callable[..., Any]:
        def ended(*args: Any, **kwargs: Any) -> Any:
            try:
                end()
            finally:
                try:
                    leave(*args, **kwargs)
                finally:
                    resume()

        return ended

    os._exit = leaving(os._exit)
    os.execv = leaving(os.execv)
    os.execve = leaving(_following(os.execve))


def _following(execve: Callable[..., Any]) -> Callable[..., Any]:
    """`execve` with an environment that arms the new interpreter, unless it does so already."""

    def following(path: Any, argv: Any, env: Mapping[Any, Any]) -> Any:
        settings = os.environ.get(VARIABLE)
        if settings is not None and not {VARIABLE, os.fsencode(VARIABLE)} & env.keys():
            env = {**env, **followed(env, settings)}
        return execve(path, argv, env)

    return following
