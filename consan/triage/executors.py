"""Executors of runs: in processes of this machine, or on a Dask cluster; both behind `concurrent.futures.Executor`.

Few runs per worker are submitted at a time, so that little is lost when a worker dies or the user stops. When a process
dies, its pool breaks without naming the run. The submitted runs are then repeated one by one, each in its
own pool, and only a run that breaks that pool, too, counts as crashed. Dask names the run that killed its worker.

Workers are spawned, not forked, and ignore Ctrl-C; the parent handles it. Not handled: resizing a Dask cluster, and
copying files to it. Its workers need consan, and the job's files, at the same paths.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Final

from consan._errors import EnvironmentFailure, UsageError
from consan.toolchain.extras import install
from consan.triage.outcome import Job, Outcome, Request
from consan.triage.run import failed, run

DASK: Final = "dask://"
AHEAD: Final = 2  # runs submitted per worker


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers:
    """A context manager; inside it, `results` does runs. `count` 0 does them in this process, one after another."""

    def __init__(self, count: int, address: str | None = None) -> None:
        self.count = count
        self.address = address
        self._pool: Executor | None = None
        self._client: Any = None

    def __enter__(self) -> Workers:
        if self.address is not None:
            self._client = connected(self.address)
            self.count = max(sum(self._client.nthreads().values()), 1)
            self._pool = self._client.get_executor(pure=False, retries=0)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._client is not None:
            self._client.close()  # pending runs are dropped
        elif self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def stop(self) -> None:
        """Stop what still runs on this machine."""
        if self._client is None:
            for process in multiprocessing.active_children():
                process.terminate()

    def results(self, job: Job, requests: Iterable[Request]) -> Generator[tuple[int, Outcome], None, None]:
        """The outcomes as they arrive, each with its request's number. Closing it drops the runs that have not begun."""
        if self.count == 0:
            yield from ((index, run(job, request)) for index, request in enumerate(requests))
            return
        pending = deque(enumerate(requests))
        running: dict[Future[Outcome], tuple[int, Request]] = {}
        try:
            while pending or running:
                self._hand_out(job, pending, running)
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    index, request = running.pop(future)
                    try:
                        yield index, future.result()
                    except BrokenProcessPool:
                        yield from self._one_by_one(job, [(index, request), *self._take_back(running)])
                        break
                    except Exception as error:  # Dask's errors for a lost worker
                        yield index, failed(request, error)
        finally:
            for future in running:
                future.cancel()

    def _hand_out(self, job: Job, pending: deque[tuple[int, Request]], running: dict[Future[Outcome], tuple[int, Request]]) -> None:
        while pending and len(running) < AHEAD * self.count:
            if self._pool is None:
                self._pool = _pool(self.count)
            index, request = pending.popleft()
            try:
                running[self._pool.submit(run, job, request)] = index, request
            except BrokenProcessPool:
                pending.appendleft((index, request))
                if running:
                    return  # the submitted runs report the same, and are read first
                self._pool = None

    def _take_back(self, running: dict[Future[Outcome], tuple[int, Request]]) -> list[tuple[int, Request]]:
        """The pool is broken: take back its unfinished runs."""
        wait(running)
        left = [given for future, given in running.items() if future.exception() is not None]
        done = {future: given for future, given in running.items() if future.exception() is None}
        running.clear()
        running.update(done)
        self._pool = None
        return left

    def _one_by_one(self, job: Job, given: list[tuple[int, Request]]) -> Iterator[tuple[int, Outcome]]:
        for index, request in given:
            with _pool(1) as alone:
                try:
                    yield index, alone.submit(run, job, request).result()
                except BrokenProcessPool as error:
                    yield index, failed(request, error)


def _pool(count: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"), initializer=_begin)


def _begin() -> None:
    """Ignore Ctrl-C in a worker, and end its program when the worker is asked to end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


def connected(address: str) -> Any:
    """A client of the cluster at dask://HOST:PORT."""
    if not address.startswith(DASK) or address == DASK:
        raise UsageError(f"--executor: expected dask://HOST:PORT, got '{address}'")
    try:
        distributed = importlib.import_module("distributed")
    except ImportError:
        raise EnvironmentFailure(f"--executor dask://... needs Dask: {install('dask')}") from None
    where = address.removeprefix(DASK)
    try:
        return distributed.Client(where if "://" in where else f"tcp://{where}", timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        raise EnvironmentFailure(f"--executor: no Dask scheduler answers at {where}: {error}") from None
