"""Does one run in the current process: a request in, an outcome out. Never raises for what goes wrong in the run.

A worker keeps a job's prepared module and buffers, and resets the device before each
run, so that runs do not depend on each other or on the worker. A program gets its own process.
"""

from __future__ import annotations

import functools
import hashlib
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from consan._errors import ConsanError, InternalError, UsageError
from consan.launching.arguments import parse_args
from consan.launching.placement import ArrayStruct, PackedStruct, Placement
from consan.session.session_options import open_session
from consan.suppressions import finish
from consan.tensormap.argument import TensorMap
from consan.triage.outcome import CRASH, ERROR, OUT_OF_MEMORY, REFUSED, Job, Outcome, Request, outcome_of
from consan.triage.run_program import run_program
from consan.triage.steering import Steering
from consan.triage.subject import KernelSubject

if TYPE_CHECKING:
    from consan.session.session import Session

Array = npt.NDArray[Any]


def run(job: Job, request: Request) -> Outcome:
    """Do one run. This is the function that workers call."""
    started, begun = time.monotonic(), time.process_time()
    try:
        outcome: Outcome = _runner(job)(request)
    except InternalError as error:
        outcome = Outcome(status=ERROR, detail=str(error))
    except ConsanError as error:
        outcome = Outcome(status=REFUSED, detail=str(error))
    except MemoryError as error:
        outcome = Outcome(status=OUT_OF_MEMORY, detail=str(error) or "MemoryError")
    except Exception as error:
        outcome = Outcome(status=ERROR, detail=f"{type(error).__name__}: {error}")
    return replace(outcome, seed=request.seed, seconds=time.monotonic() - started, processor=time.process_time() - begun)


def failed(request: Request, error: BaseException) -> Outcome:
    """The outcome of a run whose worker died."""
    return Outcome(seed=request.seed, status=CRASH, detail=f"the worker ended ({type(error).__name__}: {error})")


def _runner(job: Job) -> Any:
    if isinstance(job.subject, KernelSubject):
        return functools.partial(_run_kernel, job)
    return functools.partial(run_program, job)


_turn = threading.Lock()  # a Dask worker may have several threads, and the process has one device
_latest: tuple[Job, KernelRunner] | None = None


def _run_kernel(job: Job, request: Request) -> Outcome:
    """Use the runner of this process's last job, or make a new one."""
    global _latest  # noqa: PLW0603 - what a worker process keeps
    with _turn:
        if _latest is None or _latest[0] != job:
            _latest = job, KernelRunner(job)
        return _latest[1](request)


class KernelRunner:
    """A kernel prepared on this process's device, with its buffers."""

    def __init__(self, job: Job) -> None:
        assert isinstance(job.subject, KernelSubject)
        self.job, self.subject = job, job.subject
        specs = parse_args(self.subject.launch.args)
        session = self._session(0)
        self.device = session.device
        if not self.device.backend.seeded:
            self.device.delay(0)
        self.prepared = session.prepare(job.ptx, name=self.subject.source.file)
        self.values = [spec.materialise(self.subject.launch.seed) for spec in specs]
        self.buffers = {
            index: buffer_of(value) for index, value in enumerate(self.values, 1) if not isinstance(value, (bytes, PackedStruct))
        }
        self.placed = Placement(self.device.backend)
        for buffer in self.buffers.values():
            self.placed.address(buffer)
        self.expected = dict(_read_expected(text, self.buffers) for text in self.subject.expected.expect)

    def _session(self, seed: int) -> Session:
        checked, launch = self.subject.checked, self.subject.launch
        watched = 0 if checked.ctas is None else checked.ctas * int(np.prod(launch.cluster))
        options = checked.session_options(self.subject.device, seed, self.job.limit)
        return open_session(options, cta_limit=watched)

    def __call__(self, request: Request) -> Outcome:
        """One launch."""
        launch, steering = self.subject.launch, Steering(request, self.device)
        if self.device.backend.seeded:
            self.device.renew()
        else:
            self.device.delay(request.seed)
        session = self._session(request.seed)
        prepared = session.prepare(self.job.ptx, name=self.subject.source.file)
        self.placed.refresh()
        with steering.steer():
            values = [self.placed.parameter(value) for value in self.values]
            session.launch(
                prepared, launch.entry, launch.grid, launch.block, values,
                shared=launch.smem, cluster=launch.cluster, cooperative=prepared.synchronises_grid,
                restore=self.placed.refresh,
            )  # fmt: skip
        outcome = outcome_of(finish(session.report(), self.job.rules), session.watch.endings, whole=request.whole)
        kernels, decisions = steering.kernels(), tuple(steering.recorded)
        return self._with_result(replace(outcome, kernels=kernels, decisions=decisions, described=steering.described()), request)

    def _with_result(self, outcome: Outcome, request: Request) -> Outcome:
        """Add the contents of the buffers to the outcome."""
        found = {index: self.placed.read(buffer) for index, buffer in self.buffers.items()}
        digest = hashlib.sha256(b"".join(array.tobytes() for array in found.values())).hexdigest()
        differences = [text for index, wanted in self.expected.items() if (text := self._compare(index, found[index], wanted))]
        return replace(
            outcome,
            result=digest[:16],
            wrong=bool(differences or outcome.ended) if self.expected else None,
            differences="; ".join(differences),
            arrays=found if request.whole else {},
        )

    def _compare(self, index: int, found: Array, wanted: Array) -> str:
        return describe_differences(index, found, wanted, self.subject.expected.rtol, self.subject.expected.atol)


def buffer_of(value: Any) -> Array:
    """The array of a buffer argument; None for others."""
    array: Array = value.array if isinstance(value, (ArrayStruct, TensorMap)) else value
    return array


def _read_expected(text: str, buffers: dict[int, Array]) -> tuple[int, Array]:
    """Parse N=FILE: the expected content of argument N's buffer."""
    number, equals, name = text.partition("=")
    index = int(number) if number.isdecimal() else 0
    if not equals or index not in buffers:
        raise UsageError(f"--expect: expected N=FILE.npy, where argument N is a buffer, got '{text}'")
    buffer = buffers[index]
    try:
        wanted = np.fromfile(name, buffer.dtype) if name.endswith(".bin") else np.load(name, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"--expect: cannot read {name}: {getattr(error, 'strerror', None) or error}") from None
    if wanted.size != buffer.size or wanted.dtype != buffer.dtype:
        raise UsageError(
            f"--expect: {name} holds {wanted.size:,} elements of {wanted.dtype}, argument {index} {buffer.size:,} of {buffer.dtype}"
        )
    return index, wanted.reshape(buffer.shape)


def describe_differences(index: int, found: Array, wanted: Array, rtol: float = 0.0, atol: float = 0.0) -> str:
    """Number of differing elements, and the first of them; "" if none differ."""
    floats = found.dtype.kind == "f"
    wrong = ~np.isclose(found, wanted, rtol=rtol, atol=atol, equal_nan=True) if floats else found != wanted
    places = np.asarray(wrong).reshape(-1).nonzero()[0]
    if not len(places):
        return ""
    first = int(places[0])
    was, should = found.reshape(-1)[first], wanted.reshape(-1)[first]
    return f"{len(places):,} of {found.size:,} elements of --arg {index} (the first, [{first}], is {was}, not {should})"
