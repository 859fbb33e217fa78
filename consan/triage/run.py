"""Does one run in the current process: a request in, an outcome out. Never raises for what goes wrong in the run.

A worker keeps a job's prepared module and buffers, and resets the device before each
run, so that runs do not depend on each other or on the worker. A program gets its own process.
"""

from __future__ import annotations

import functools
import hashlib
import threading
import time
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from consan._errors import ConsanError, InternalError, UsageError
from consan.arguments import parse_args
from consan.reports.json_format import finding_to_json
from consan.suppressions import finish
from consan.tensormap_argument import TensorMap
from consan.triage.outcome import CRASH, ERROR, OUT_OF_MEMORY, REFUSED, TIMEOUT, Job, Outcome, Request
from consan.triage.steering import Steering
from consan.triage.subject import Kernel

if TYPE_CHECKING:
    from consan.reports.model import Report
    from consan.session import Session

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
    if isinstance(job.subject, Kernel):
        return functools.partial(_run_kernel, job)
    from consan.triage.run_program import run_program

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
        assert isinstance(job.subject, Kernel)
        self.job, self.subject = job, job.subject
        specs = parse_args(self.subject.args)
        session = self._session(0)
        self.device = session.device
        if not self.on_cpu:
            self.device.delay(0)
        self.prepared = session.prepare(job.ptx, name=self.subject.file)
        self.values = [spec.materialise(self.subject.seed) for spec in specs]
        self.buffers = {index: buffer_of(value) for index, value in enumerate(self.values, 1) if not isinstance(value, bytes)}
        self.places = {index: int(self.device.backend.alloc(buffer.nbytes)) for index, buffer in self.buffers.items()}
        self.expected = dict(_read_expected(text, self.buffers) for text in self.subject.expect)

    @property
    def on_cpu(self) -> bool:
        """Whether schedules are the virtual machine's. A GPU has its own schedule, with seeded delays."""
        return bool(self.device.backend.device_name == "cpu")

    def _session(self, seed: int) -> Session:
        from consan.session import Session

        subject = self.subject
        watched = 0 if subject.ctas is None else subject.ctas * int(np.prod(subject.cluster))
        return Session(
            device=subject.device,
            seed=seed,
            policy=subject.policy,
            timeout=self.job.limit,
            cta_limit=watched,
            shadow_memory=subject.shadow_memory,
            assembly=subject.assembly,
        )

    def __call__(self, request: Request) -> Outcome:
        """One launch."""
        subject, steering = self.subject, Steering(request, self.device)
        if self.on_cpu:
            self.device.renew()
        else:
            self.device.delay(request.seed)
        session = self._session(request.seed)
        prepared = session.prepare(self.job.ptx, name=subject.file)
        for index, buffer in self.buffers.items():
            self.device.backend.write(self.places[index], buffer)
        with steering.steer():
            session.launch(
                prepared, subject.entry, subject.grid, subject.block, self._parameters(), shared=subject.smem, cluster=subject.cluster
            )
        outcome = outcome_of(finish(session.report(), self.job.rules), session.endings, whole=request.whole)
        kernels, decisions = steering.kernels(), tuple(steering.recorded)
        return self._with_result(replace(outcome, kernels=kernels, decisions=decisions, told=steering.told()), request)

    def _parameters(self) -> list[bytes]:
        return [self._parameter(index, value) for index, value in enumerate(self.values, 1)]

    def _parameter(self, index: int, value: Any) -> bytes:
        if isinstance(value, bytes):
            return value
        address = self.places[index]
        if isinstance(value, TensorMap):
            data: bytes = self.device.backend.tensor_map(value.at(address))
            return data
        return address.to_bytes(8, "little")

    def _with_result(self, outcome: Outcome, request: Request) -> Outcome:
        """Add the contents of the buffers to the outcome."""
        found = {index: self._read(index) for index in self.buffers}
        digest = hashlib.sha256(b"".join(array.tobytes() for array in found.values())).hexdigest()
        differences = [text for index, wanted in self.expected.items() if (text := self._compare(index, found[index], wanted))]
        return replace(
            outcome,
            result=digest[:16],
            wrong=bool(differences or outcome.ended) if self.expected else None,
            differences="; ".join(differences),
            arrays=found if request.whole else {},
        )

    def _read(self, index: int) -> Array:
        buffer = self.buffers[index]
        raw = self.device.backend.read(self.places[index], buffer.nbytes)
        return np.frombuffer(raw, buffer.dtype).reshape(buffer.shape)

    def _compare(self, index: int, found: Array, wanted: Array) -> str:
        return describe_differences(index, found, wanted, self.subject.rtol, self.subject.atol)


def buffer_of(value: Any) -> Array:
    """The array of a buffer argument; None for others."""
    array: Array = value.array if isinstance(value, TensorMap) else value
    return array


def outcome_of(report: Report, endings: Collection[str], *, whole: bool = False) -> Outcome:
    """The outcome from a report. A run that the time limit ended is no evidence."""
    ended = next(iter(endings), "")
    if "timeout" in endings:
        return Outcome(status=TIMEOUT, device=report.device, detail="a launch did not end in time")
    return Outcome(
        device=report.device,
        verdict=report.verdict,
        findings=tuple(finding_to_json(finding) for finding in report.active),
        incomplete=report.incomplete,
        not_checked=report.not_checked,
        ended=ended,
        report=report if whole else None,
    )


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
