"""Hands files to servers, as many at a time as there are cores here or on a Dask cluster, and keeps what they answer.

A journal has a line for each file that is done, so that a run that was stopped goes on. A server that ends is replaced.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import os
import queue
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from pathlib import Path
from typing import Any, Final

from consan._errors import ConsanError, EnvironmentFailure
from consan.audit import rows
from consan.audit.child.limits import TAKEN
from consan.audit.files import launches_of, sources_in, text_of
from consan.audit.python_text import builds_extensions, uses_triton
from consan.audit.rows import FileResult, KernelRow
from consan.dataclass import dataclass

_STARTS: Final = 20
_ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@dataclass(frozen=True)
class AuditRequest:
    """One file. `text`: its contents. `reference`: the text of the module with the `Model` to compare with.

    `launches`: the text of its launch file. `seeds`: the schedules of each launch, whose results are compared; 0: nothing is asked.
    `arguments`: of its `main`. `folders`: with more headers. `device`: "cpu" or "gpu".
    """

    file: str
    text: str
    reference: str | None = None
    timeout: float = 120.0
    launch_timeout: float = 20.0
    memory: int = 8 << 30
    launches: str | None = None
    seeds: int = 0
    arguments: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    device: str = "cpu"

    def as_dict(self) -> dict[str, Any]:
        """For the server."""
        return {**vars(self), "imports": self.imports}

    @property
    def imports(self) -> list[str]:
        """Modules that the server is to import before it forks."""
        if not self.file.endswith(".py"):
            return []
        wanted = {"torch": "torch" in self.text, "extensions": builds_extensions(self.text), "triton": uses_triton(self.text)}
        return [name for name, is_wanted in wanted.items() if is_wanted]

    @property
    def digest(self) -> str:
        """Tells whether a journal's line is about the same file."""
        return hashlib.sha256(json.dumps(vars(self), sort_keys=True).encode()).hexdigest()[:24]


def requests_for(paths: Iterable[str], reference: str | None, limits: Mapping[str, Any]) -> list[AuditRequest]:
    """Those of files, and of the files in folders. `limits`: more fields of a request. Raises UsageError where there is none."""
    found = sources_in(*paths)
    return [AuditRequest(str(each), text_of(each), reference, launches=launches_of(each), **limits) for each in found]


class AuditServer:
    """One process that audits."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def result(self, request: AuditRequest) -> FileResult:
        """The result of a file. A server that ends meanwhile leaves a row that says so."""
        for _ in range(_STARTS):
            process = self._running()
            assert process.stdin is not None
            assert process.stdout is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(request.as_dict()) + "\n")
                process.stdin.flush()
            answer = process.stdout.readline()
            if answer:
                return FileResult.of(json.loads(answer))
            self.close()
            status = process.returncode
            if status != TAKEN:
                row = KernelRow(request.file, "", rows.CRASHED, note=f"the server of the audit ended with status {status}")
                return FileResult(request.file, (row,))
        raise EnvironmentFailure("consan audit: the virtual machine finds no room for its memory")

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            command = [sys.executable, "-P", "-m", "consan.audit.child.server"]
            environment = {**os.environ, **_ONE_THREAD}  # a process with threads must not fork
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        return self._process

    def close(self) -> None:
        """End it."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(BrokenPipeError):
                process.communicate()


class Journal:
    """Results by the digests of requests, in a file with a line each. Without a path nothing is kept."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known: dict[str, FileResult] = {}
        if path is not None and path.is_file():
            for line in path.read_text().splitlines():
                with contextlib.suppress(ValueError, KeyError, TypeError):  # a line that was cut off
                    entry = json.loads(line)
                    self._known[entry["digest"]] = FileResult.of(entry["result"])

    def get(self, request: AuditRequest) -> FileResult | None:
        """The result of an earlier run."""
        return self._known.get(request.digest)

    def put(self, request: AuditRequest, result: FileResult) -> None:
        """Keep a result."""
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps({"digest": request.digest, "result": result.as_dict()}) + "\n")


class ServerPool:
    """Servers for threads that each use one at a time."""

    def __init__(self) -> None:
        self._free: queue.LifoQueue[AuditServer] = queue.LifoQueue()

    def result(self, request: AuditRequest) -> FileResult:
        """The result of a file, from a server that nobody else uses meanwhile."""
        try:
            server = self._free.get_nowait()
        except queue.Empty:
            server = AuditServer()
        try:
            return server.result(request)
        finally:
            self._free.put(server)

    def close(self) -> None:
        """End the servers."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._free.get_nowait().close()


SERVERS: Final = ServerPool()
"""Those of this process, which may be a worker of a cluster."""
atexit.register(SERVERS.close)


def audited(request: AuditRequest) -> FileResult:
    """The result of a file, in any process."""
    return SERVERS.result(request)


def run(
    requests: Sequence[AuditRequest],
    executor: Executor,
    journal: Journal,
    each: Callable[[FileResult], None] = lambda result: None,
) -> list[FileResult]:
    """The results of all files, in their order. The workers of `executor` audit them: threads of this process, or a cluster's processes."""
    results: dict[int, FileResult] = {}
    waiting: dict[Future[FileResult], int] = {}
    for number, request in enumerate(requests):
        known = journal.get(request)
        if known is None:
            waiting[executor.submit(audited, request)] = number
        else:
            results[number] = known
            each(known)
    try:
        for future in as_completed(waiting):
            number = waiting[future]
            results[number] = _finished(future, requests[number])
            journal.put(requests[number], results[number])
            each(results[number])
    finally:
        for future in waiting:
            future.cancel()
        executor.shutdown(wait=False)
        SERVERS.close()
    return [results[number] for number in sorted(results)]


def _finished(future: Future[FileResult], request: AuditRequest) -> FileResult:
    """The rows that a worker gave. A file that ends the worker of a cluster has a row that says so."""
    try:
        return future.result()
    except ConsanError:
        raise
    except Exception as error:
        row = KernelRow(request.file, "", rows.CRASHED, note=f"the worker of the audit failed: {type(error).__name__}: {error}"[:300])
        return FileResult(request.file, (row,))
