"""The process of one file: builds its host code, runs it, and reports each launch. It trusts the file with nothing but itself (limits.py).

Events go through `Events`, a pipe that the file's code is not given. Its output is kept apart.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import re
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import asdict, field
from pathlib import Path
from typing import Any, Final

from consan._errors import ConsanError
from consan.audit import rows
from consan.audit.child.checked import AuditedDevice, CheckedLaunch, CheckedLaunches
from consan.audit.child.described import DescribedFile, audit_described, audit_guessed
from consan.audit.child.endings import ending, inputs_without_file
from consan.audit.child.launcher import LaunchHooks
from consan.audit.child.python_module import audit_python
from consan.audit.confirming import WHOLE
from consan.audit.host import sources
from consan.audit.host.building import HostBuildError, built, first_error, runtime
from consan.audit.host.makefile import Recipe, first_is_size, recipe_of, smaller_arguments
from consan.audit.host.program import DeviceProgram, HostProgram
from consan.audit.host.sizes import LEAST, TIMES, shrunk_text
from consan.audit.host.sources import AuditedSource
from consan.audit.launch_file import SUFFIX, LaunchSize
from consan.dataclass import dataclass
from consan.reports.model import Finding

_MOST_MODES: Final = 16  # values of the first argument of `main` that are tried
_MOST_PRINTED: Final = 4000  # bytes of what a program printed that are read
_ARGUMENT: Final = re.compile(r"\bargv\s*\[\s*1\s*\]")


@dataclass
class Events:
    """The pipe to the server. Each line has the token of this file, which the pipe's reader asks for."""

    number: int
    token: str
    counted: mmap.mmap = field(default_factory=lambda: mmap.mmap(-1, 16))  # shared with processes that are forked

    @property
    def launches(self) -> int:
        """How many launches have been sent."""
        return int.from_bytes(self.counted[:8], "little")

    @property
    def has_empty_grid(self) -> bool:
        """Whether a launch was refused since its grid is empty."""
        return any(self.counted[8:])

    def empty_grid(self) -> None:
        """A launch was refused since its grid is empty."""
        self.counted[8:9] = b"\1"

    def send(self, event: str, **what: Any) -> None:
        """One event."""
        line = json.dumps({"token": self.token, "event": event, **what}) + "\n"
        data = line.encode()
        while data:
            data = data[os.write(self.number, data) :]

    def launch(self, made: CheckedLaunch) -> None:
        """A launch that was made."""
        shape, report = _in_words(made.shape), made.report
        self.counted[:8] = (self.launches + 1).to_bytes(8, "little")
        found = [_finding(each, made.guessed) for each in report.active if each.severity != "note"]
        verdict = rows.GUESSED.get(report.verdict, report.verdict) if made.guessed else report.verdict
        self.send(
            "launch", kernel=made.kernel, launch=shape, verdict=verdict, findings=found, incomplete=list(report.incomplete),
            seconds=round(made.seconds, 3), guessed=made.guessed, answers=made.answers and asdict(made.answers), stopped=made.stopped,
        )  # fmt: skip

    @contextlib.contextmanager
    def builds(self) -> Iterator[None]:
        """While compilers build host code: what they take of the processor."""
        before = os.times()
        try:
            yield
        finally:
            after = os.times()
            taken = after.children_user + after.children_system - before.children_user - before.children_system
            self.send("built", building=round(taken, 3))

    def failed(self, kernel: str, verdict: str, why: str) -> None:
        """A kernel that was not launched."""
        self.send("failed", kernel=kernel, verdict=verdict, why=why[:2000])

    def note(self, text: str) -> None:
        """A sentence for the table."""
        self.send("note", text=text)


def _dims(dims: tuple[int, int, int]) -> str:
    return ",".join(map(str, dims if dims[2] > 1 else dims[:2] if dims[1] > 1 else dims[:1]))


def _in_words(shape: LaunchSize) -> str:
    return f"{_dims(shape.grid)} x {_dims(shape.block)}" + (f", {shape.shared} B" if shape.shared else "")


def _finding(found: Finding, guessed: bool) -> dict[str, Any]:
    """A finding for a row. One of a guessed launch is a warning: the guess may be wrong."""
    placed = [each for each in found.accesses if each.line]
    lines = tuple(dict.fromkeys(each.line for each in placed))
    last = placed[-1] if placed else None
    file, line = (last.file, last.line) if last else ("", 0)
    severity, message = ("warning", f"{found.message} (guessed launch)") if guessed else (found.severity, found.message)
    where = {"file": file, "line": line, "lines": lines}
    return {"kind": found.kind, "hazard": found.hazard, "severity": severity, "message": message, **where}


@dataclass
class FileWork:
    """One file in its process. `folder`: where it may write. `seconds`: for a launch. `seeds`: schedules of each (checked.py).

    `arguments`: of its `main`. `folders`: with more headers. `first_threads`: it runs with its own sizes, and of the CTAs of each launch
    those start that have so many threads; 0: sizes are made smaller.
    """

    audited: AuditedDevice
    events: Events
    folder: Path
    seconds: float
    seeds: int = 0
    arguments: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()
    first_threads: int = 0

    @property
    def shrinks(self) -> bool:
        """Whether sizes are to be made smaller."""
        return self.first_threads == 0

    @property
    def compares(self) -> bool:
        """Whether all CTAs start, so that results can be compared with those of a reference."""
        return self.audited.is_gpu or self.first_threads in (0, WHOLE)

    def checked(self) -> CheckedLaunches:
        """Makes launches, and sends each."""
        first = 0 if self.audited.is_gpu else self.first_threads
        return CheckedLaunches(self.audited, self.events.launch, self.seconds, self.seeds, first)

    def launcher(self) -> LaunchHooks:
        """The hooks, in place."""
        made = LaunchHooks(
            self.checked(), self.events.failed, self.events.note, lambda: self.events.send("left out"), self.events.empty_grid
        )
        made.install(runtime(), self.folder / "runtime.so")
        return made


def audit_cuda(work: FileWork, path: str, text: str) -> None:
    """A `.cu` file with a `main`, which is run. Where it launches nothing, or a grid has become empty, larger sizes are tried."""
    recipe = recipe_of(Path(path))
    launcher: LaunchHooks | None = None
    for made in dict.fromkeys(shrunk_text(text, times) for times in TIMES) if work.shrinks else (text,):
        if made != text:
            work.events.send("smaller")
        source = _whole(work, recipe, path, made, [each for each in recipe.sources if each != Path(path)])
        if launcher is None:
            work.events.send("kernels", names=source.kernels)
        if not source.has_main:
            work.events.note("it has no main and no launch file: launches are guessed")
            audit_guessed(work.checked(), work.events, DescribedFile(path, text, DeviceProgram(source)))
            return
        try:
            with work.events.builds():
                source, library = _built(work, recipe, source, made)
        except HostBuildError as error:
            work.events.failed("", rows.NOT_COMPILED, f"host: {first_error(str(error))}")
            audit_guessed(work.checked(), work.events, DescribedFile(path, text, DeviceProgram(source)))
            return
        launcher = launcher or work.launcher()
        program = HostProgram(source, library, work.folder / f"program{len(launcher.programs)}.so")
        launcher.programs.append(program)
        _run_main(program, program.main(), recipe.arguments, work)
        if work.events.launches and not work.events.has_empty_grid:
            return


def _whole(work: FileWork, recipe: Recipe, path: str, text: str, others: Sequence[Path] = ()) -> AuditedSource:
    return sources.whole(path, text, (*recipe.folders, *work.folders), others).defining(recipe.macros)


def _built(work: FileWork, recipe: Recipe, joined: AuditedSource, text: str) -> tuple[AuditedSource, bytes]:
    """A program as one source. Where that does not compile, as two of its sources have one name, those of the host by themselves."""
    path, others = joined.name, [each for each in recipe.sources if each != Path(joined.name)]
    host_only = [each for each in others if each.suffix != ".cu" or "__global__" not in each.read_text(errors="replace")]
    try:
        return joined, built(joined)
    except HostBuildError:
        if not host_only:
            raise
    source = _whole(work, recipe, path, text, [each for each in others if each not in host_only])
    return source, built(source, [_whole(work, recipe, str(each), each.read_text(errors="replace")) for each in host_only])


def _run_main(program: HostProgram, main: int, given: Sequence[str], work: FileWork) -> None:
    """Run `main` with the arguments of the recipe, smaller at first, or with none."""
    arguments = work.arguments or (smaller_arguments(program.source.text, tuple(given)) if work.shrinks else tuple(given))
    if arguments != tuple(given) and not work.arguments:
        work.events.send("smaller")
    if arguments:
        _run(program, main, arguments, work)
    if not work.events.launches and arguments != given and not work.arguments:
        _run(program, main, given, work)
    if not arguments:
        _run_modes(program, main, program.source.text, work)
    if not work.events.launches and (absent := inputs_without_file(given)):
        work.events.note(f"an input of `make run` is not there: {', '.join(absent)}")


def _run(program: HostProgram, main: int, arguments: Sequence[str], work: FileWork) -> None:
    """Run `main` with arguments, and say how it ended."""
    status, said = _ended(program, main, arguments, work)
    if status:
        _send_status(work.events, status, said)


def _ended(program: HostProgram, main: int, arguments: Sequence[str], work: FileWork) -> tuple[int, str]:
    """Run `main` with arguments. Its status, and how it ended in words."""
    work.events.send("begins")
    log = work.folder / "log"
    before = log.stat().st_size if log.is_file() else 0
    status = _in_child(lambda: _launching(work, main, [program.source.name, *arguments]))
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(max(before, log.stat().st_size - _MOST_PRINTED))
        return status, ending(status, file.read().decode(errors="replace"), program)
    return status, ending(status, "", program)


def _run_modes(program: HostProgram, main: int, text: str, work: FileWork) -> None:
    """Run `main`; where a number as its first argument chooses a kernel, with one after the other.

    Where the argument is a size, without it: no size is 1, 2, 3, ... in earnest. A program that launches nothing then gets a number, too,
    unless a grid had become empty: larger sizes come, and the number may be that of a block's threads.
    """
    chooses = _ARGUMENT.search(text) is not None
    if chooses and first_is_size(text):
        _run(program, main, (), work)
        if not work.events.launches and not work.events.has_empty_grid:
            _run(program, main, (str(LEAST),), work)
        return
    for number in range(1, _MOST_MODES + 1) if chooses else (None,):
        before = work.events.launches
        status, said = _ended(program, main, () if number is None else (str(number),), work)
        if chooses and status and work.events.launches == before and number != 1:
            break  # there is no kernel of this number
        if status:
            _send_status(work.events, status, said)


def _send_status(events: Events, status: int, said: str) -> None:
    if status < 0:
        events.failed("", rows.CRASHED, said)
    else:
        events.note(said)


def _in_child(run: Any) -> int:
    """Run in a process of its own, since a program may end it. The status; below zero: a signal."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 70
        try:
            status = run()
        except BaseException:
            traceback.print_exc()
        finally:
            ctypes.CDLL(None).fflush(None)
            os._exit(status & 255)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _launching(work: FileWork, main: int, arguments: list[str]) -> int:
    """Call `main` where there is a device."""
    try:
        _ = work.audited.opened
    except ConsanError as error:
        work.events.failed("", rows.CRASHED, str(error))
        return 0
    return _call(main, arguments)


def _call(main: int, arguments: list[str]) -> int:
    ctypes.CDLL(None).consan_begin(arguments[0].encode())
    words = (ctypes.c_char_p * (len(arguments) + 1))(*(each.encode() for each in arguments), None)
    return int(ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p)(main)(len(arguments), ctypes.addressof(words))) & 255


def audit(work: FileWork, path: str, text: str, reference: str | None, launches: str | None) -> None:
    """One file, to its end."""
    started = time.monotonic()
    try:
        if launches is not None:
            audit_described(work, path, text, launches)
        elif path.endswith(".ptx"):
            work.events.note(f"it has no launch file ({Path(path).with_suffix(SUFFIX).name}): launches are guessed")
            audit_guessed(work.checked(), work.events, DescribedFile.of_file(path, text))
        elif path.endswith((".cu", ".cuh")):
            audit_cuda(work, path, text)
        else:
            audit_python(work, path, text, reference)
    except ConsanError as error:
        work.events.failed("", rows.CRASHED, str(error))
    work.events.send("done", seconds=time.monotonic() - started)
