"""Runs a native program with the interposer, and merges what its processes have left."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from consan._errors import ExitCode, NotSupported, UsageError
from consan.backends.driver import why_unavailable
from consan.dataclass import dataclass
from consan.native.client import GPU, ProcessReport
from consan.native.program import NativeProgram, out_of_reach
from consan.native.server import Server
from consan.native.stand_in import StandInServer
from consan.reports.counts import plural
from consan.reports.model import Report
from consan.reports.verdict.combination import combine
from consan.reports.verdict.conclusion import assemble, with_gaps
from consan.session.planning.options import SessionOptions
from consan.session.spent import begin, spent

_PATIENCE: Final = 3.0  # seconds that the program has to end after Ctrl-C, and again after SIGTERM
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_NO_KERNEL: Final = "no process of the program has loaded a kernel through libcuda.so.1"


@dataclass(frozen=True)
class NativeRun:
    """A program has run: its status, the reports of its processes, and why these are incomplete."""

    program: NativeProgram
    options: SessionOptions
    status: int
    outcomes: list[ProcessReport]
    reasons: list[str]

    def together(self) -> Report:
        """One report."""
        why_nothing = out_of_reach(self.program.file) or _NO_KERNEL
        device = "cpu" if self.options.device == "cpu" else GPU
        nothing = assemble(device=device, why_nothing=why_nothing, seed=self.options.seed)
        report = combine([outcome.report for outcome in self.outcomes] or [nothing])
        processes = len({outcome.pid for outcome in self.outcomes})
        counted = f"{plural(processes, 'process', 'processes')} included" if processes > 1 else ""
        notes = (*report.notes, *filter(None, (self.program.note, counted)))
        return with_gaps(report, self.reasons, notes=notes, cost=spent())


def run_native(program: NativeProgram, options: SessionOptions, *, delays: bool = False) -> tuple[int, Report, set[tuple[str, int]]]:
    """The program's status, the report of all its processes, and the source lines that were watched.

    `delays`: warps are delayed, as the seed says.
    """
    ran = run_processes(program, options, delays=delays)
    return ran.status, ran.together(), {place for outcome in ran.outcomes for place in outcome.places}


def run_processes(
    program: NativeProgram, options: SessionOptions, *, delays: bool = False, more: Mapping[str, str] = _NOTHING
) -> NativeRun:
    """Run it. `more`: variables for the program."""
    check_native(options)
    begin()
    with StandInServer(options) if options.device == "cpu" else Server(options, delays=delays) as server:
        status = _status(program, {**server.environment(), **more})
        return NativeRun(program, options, status, *server.outcomes())


def has_gpu() -> bool:
    """Whether programs can run on a GPU."""
    return why_unavailable() is None


def check_native(options: SessionOptions) -> None:
    """Refuse options that such a program cannot be run with."""
    if options.filter.launch_skip or options.filter.launch_count is not None:
        raise NotSupported("--launch-skip and --launch-count do not work for programs that are not Python; --kernel-name chooses modules")
    if options.filter.overhead is not None and options.device == "cpu":
        raise NotSupported("--overhead does not work with --device cpu for programs that are not Python")


def _status(program: NativeProgram, environment: Mapping[str, str]) -> int:
    """Run it to its end. Killed by a signal, its status is that of a shell."""
    try:
        process = subprocess.Popen(program.words, executable=program.file, env=environment)
    except OSError as error:
        raise UsageError(f"cannot run {program.file}: {error.strerror or error}") from None
    try:
        status = process.wait()
    except KeyboardInterrupt:
        _end(process)
        return int(ExitCode.INTERRUPTED)
    if status < 0:
        print(f"consan: {program.words[0]} was ended by {_signal_name(-status)}", file=sys.stderr)
        return 128 - status
    return status


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ctrl-C reaches the program, too; SIGTERM may have come to this process alone."""
    steps: Sequence[signal.Signals | None] = (None, signal.SIGTERM, signal.SIGKILL)
    for number in steps:
        if number is not None:
            process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE)
            return


def _signal_name(number: int) -> str:
    return signal.Signals(number).name if number in signal.Signals.__members__.values() else f"signal {number}"
