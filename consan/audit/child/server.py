"""The process that audits files, one after the other: it imports once, and forks for each file.

It reads requests from its standard input, a line of JSON each, and writes a line with the result of each file to its standard output. The
forked process writes events to a pipe, each with a token. The server waits for it up to a time, then ends it with all that it started.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import secrets
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from consan._errors import ConsanError
from consan.audit import rows
from consan.audit.child import limits, worker
from consan.audit.child.checked import AuditedDevice
from consan.audit.child.machine import TakenError, new_device
from consan.audit.child.warming import warm
from consan.audit.confirming import STEPS, WHOLE, Confirmation, ResultConfirmation
from consan.audit.host import building
from consan.audit.partial import LaunchRepeats, doubt
from consan.audit.rows import FileEvents
from consan.backends.cpu.state.placed import release_memory
from consan.session.modules.device import Device
from consan.toolchain.cache import default_folder

_POLL: Final = 0.02
_COUNTED: Final = 0.25
_LAST_LINES: Final = 3
_FIRST: Final = 0.75  # of a file's time: for the run with smaller sizes


def serve() -> int:
    """Answer requests until the input ends."""
    try:
        device = new_device()
    except TakenError:
        return limits.TAKEN
    warm(device)
    assert len(os.listdir("/proc/self/task")) == 1, "a process with threads must not fork"
    limits.adopt()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what others print must not be taken for an answer
    for line in sys.stdin:
        request = json.loads(line)
        for name in request["imports"]:
            _IMPORTS[name]()
        answers.write(json.dumps(_audited(device, request)) + "\n")
        answers.flush()
    return 0


def _import_torch() -> None:
    with contextlib.suppress(ImportError):
        importlib.import_module("torch").set_num_threads(1)


def _prepare_extensions() -> None:
    _import_torch()
    with contextlib.suppress(ConsanError):
        if "torch" in sys.modules:
            building.precompiled_torch()
            building.converting()


def _import_triton() -> None:
    with contextlib.suppress(ImportError):
        importlib.import_module("triton.testing")


_IMPORTS: Final = {"torch": _import_torch, "extensions": _prepare_extensions, "triton": _import_triton}


def _audited(device: Device, request: Mapping[str, Any]) -> dict[str, Any]:
    """The result of one file. At its own sizes are looked for errors that it shows at smaller ones (confirming.py), and those of launches
    that were not checked in full (partial.py)."""
    started, before = time.monotonic(), _processor_seconds()
    deadline = started + request["timeout"]
    collected, ending = _made(device, request, started + _FIRST * request["timeout"])
    doubt(collected)
    confirmation, compared = Confirmation(collected), ResultConfirmation(collected)
    repeats = LaunchRepeats(collected, stopped=ending is not None)
    for threads in (WHOLE,) if _on_gpu(request) else STEPS:
        further = repeats.open or (compared.open and threads == WHOLE)
        if (confirmation.open or further) and time.monotonic() < deadline:
            larger = {**request, "seeds": 0, "first_threads": threads}
            again, stopped = _made(device, larger, deadline, *(() if further else (confirmation.confirms,)))
            collected.building += again.building
            confirmation.take(again, ended=stopped is None)
            repeats.take(again)
            compared.take(again)
    for each in (confirmation, repeats, compared):
        each.apply()
    result = collected.result(ending, time.monotonic() - started)
    return replace(result, processor_seconds=_processor_seconds() - before, building_seconds=collected.building).as_dict()


def _on_gpu(request: Mapping[str, Any]) -> bool:
    return bool(request["device"] == "gpu")


def _processor_seconds() -> float:
    """The seconds of the processor that ended child processes have taken."""
    taken = os.times()
    return taken.children_user + taken.children_system


def _made(
    device: Device, request: Mapping[str, Any], deadline: float, enough: Callable[[FileEvents], bool] = lambda events: False
) -> tuple[FileEvents, tuple[str, str] | None]:
    """Run a file: its events, and the verdict and the reason where it did not end by itself. `enough`: whether the events suffice."""
    folder = Path(tempfile.mkdtemp(prefix="consan-audit-"))
    reader, writer = os.pipe()
    token, child = secrets.token_hex(16), os.fork()
    if child == 0:
        os.close(reader)
        _work(device, request, folder, writer, token, deadline)
    os.close(writer)
    collected = FileEvents(request["file"])
    try:
        ending = _watched(child, reader, collected, token, deadline, enough)
        return collected, ending and (ending[0], ending[1] + _printed(folder))
    finally:
        os.close(reader)
        _end_all()
        shutil.rmtree(folder, ignore_errors=True)


def _work(device: Device, request: Mapping[str, Any], folder: Path, writer: int, token: str, deadline: float) -> None:
    """The forked process. Does not return."""
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        null, log = os.open(os.devnull, os.O_RDONLY), os.open(folder / "log", os.O_WRONLY | os.O_CREAT, 0o600)
        for number, into in ((null, 0), (log, 1), (log, 2)):
            os.dup2(number, into)
        pipe = os.dup(writer)
        os.closerange(3, pipe)
        os.closerange(pipe + 1, 1 << 12)
        os.chdir(folder)
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
        cache = default_folder()
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.environ["TRITON_CACHE_DIR"] = str(cache / "triton")
        seconds = max(1.0, deadline - time.monotonic())
        gpu = _on_gpu(request)
        if gpu:
            release_memory()
            limits.limit_time(seconds)
        else:
            limits.limit(request["memory"], seconds, (folder, cache, Path(os.devnull), Path("/dev/shm")))
        events = worker.Events(pipe, token)
        given = tuple(request["arguments"]), tuple(map(Path, request["folders"])), request.get("first_threads", 0)
        work = worker.FileWork(AuditedDevice(None if gpu else device), events, folder, request["launch_timeout"], request["seeds"], *given)
        worker.audit(work, request["file"], request["text"], request.get("reference"), request.get("launches"))
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(70)


def _watched(
    child: int, reader: int, collected: FileEvents, token: str, deadline: float, enough: Callable[[FileEvents], bool]
) -> tuple[str, str] | None:
    """Read events until the process ends or they are enough. None if it ended by itself; else the verdict and the reason."""
    os.set_blocking(reader, False)
    rest, counted, status = b"", time.monotonic(), None
    while True:
        ready = select.select([reader], [], [], _POLL)[0]
        data = _read(reader) if ready else b""
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            _take(collected, line, token)
        if lines and enough(collected):
            return None
        if status is None and (found := os.waitpid(child, os.WNOHANG))[0]:
            status = os.waitstatus_to_exitcode(found[1])
        if status is not None and not data:
            return _ended(status, collected)
        now = time.monotonic()
        if now > deadline:
            return rows.TIMED_OUT, "it was stopped after its time"
        if now - counted > _COUNTED:
            counted = now
            if len(limits.descendants(child)) > limits.MOST_PROCESSES:
                return rows.CRASHED, f"it started more than {limits.MOST_PROCESSES} processes, and was stopped"


def _read(reader: int) -> bytes:
    with contextlib.suppress(BlockingIOError):
        return os.read(reader, 1 << 16)
    return b""


def _take(collected: FileEvents, line: bytes, token: str) -> None:
    """An event, if it is one of this file's."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        event = json.loads(line)
        if event.pop("token") == token:
            collected.take(event)


def _ended(status: int, collected: FileEvents) -> tuple[str, str] | None:
    if status < 0:
        return rows.CRASHED, f"its process ended by signal {signal.Signals(-status).name}"
    if status or not collected.done:
        return rows.CRASHED, f"its process ended with status {status} before the audit was done"
    return None


def _printed(folder: Path) -> str:
    """The last lines that it printed."""
    with contextlib.suppress(OSError):
        text = (folder / "log").read_bytes()[-2000:].decode(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()][-_LAST_LINES:]
        return f"; it printed last: {' | '.join(lines)}" if lines else ""
    return ""


def _end_all() -> None:
    """End all that is left of a file: its children, and orphans that came here."""
    for _ in range(100):
        left = limits.descendants(os.getpid())
        if not left:
            return
        for each in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(_POLL)


if __name__ == "__main__":
    sys.exit(serve())
