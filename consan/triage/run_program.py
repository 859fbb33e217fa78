"""Does one run of a program in its own process, which a crash or a time limit may end:

    python -m consan.triage.run_program REQUEST OUTCOME

The program runs as under `consan run`, with the request's schedules. Its result is its status and, on request, its output.
"""

from __future__ import annotations

import argparse
import hashlib
import pickle
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final

from consan import api, options
from consan._errors import ConsanError
from consan.native.run import run_native
from consan.process import program as programs
from consan.reports.model import Report
from consan.session.planning.options import SessionOptions
from consan.session.session_options import open_session
from consan.suppressions import finish
from consan.triage.outcome import CRASH, ERROR, OUT_OF_MEMORY, REFUSED, TIMEOUT, Job, Outcome, Request, outcome_of
from consan.triage.steering import Steering
from consan.triage.subject import ProgramSubject

_TAIL: Final = 400  # characters of a program's last output


def run_program(job: Job, request: Request) -> Outcome:
    """Start the process, wait, and read its results."""
    subject = job.subject
    assert isinstance(subject, ProgramSubject)
    with tempfile.TemporaryDirectory(prefix="consan-") as folder:
        given, answer = Path(folder, "request"), Path(folder, "outcome")
        given.write_bytes(pickle.dumps((job, request)))
        words = [sys.executable, "-m", "consan.triage.run_program", str(given), str(answer)]
        try:
            done = subprocess.run(words, cwd=subject.folder, capture_output=True, timeout=job.limit, check=False)
        except subprocess.TimeoutExpired:
            return Outcome(status=TIMEOUT, detail=f"the program did not end within {job.limit:g} s")
        if not answer.exists():
            return _without_answer(done)
        outcome: Outcome = pickle.loads(answer.read_bytes())
    return _with_result(outcome, done, subject)


def _without_answer(done: subprocess.CompletedProcess[bytes]) -> Outcome:
    """The outcome if the process ended without an answer: killed, or by os._exit."""
    words = _last_words(done)
    if done.returncode >= 0:
        return Outcome(status=CRASH, detail=f"the process ended with status {done.returncode} on its own{words}")
    name = signal.Signals(-done.returncode).name if -done.returncode in set(signal.Signals) else f"signal {-done.returncode}"
    guess = ", perhaps for want of memory" if name == "SIGKILL" else ""
    return Outcome(status=CRASH, detail=f"the process was ended by {name}{guess}{words}")


def _last_words(done: subprocess.CompletedProcess[bytes]) -> str:
    text = done.stderr.decode(errors="replace").strip()[-_TAIL:]
    return f": {text}" if text else ""


def _with_result(outcome: Outcome, done: subprocess.CompletedProcess[bytes], subject: ProgramSubject) -> Outcome:
    if outcome.status != "ok":
        return outcome
    last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    if outcome.result != "exit 0" and "MemoryError" in last.partition(":")[0]:
        return replace(outcome, status=OUT_OF_MEMORY, detail=last)
    wrong = outcome.result != "exit 0" or bool(outcome.ended)
    if not subject.stdout:
        return replace(outcome, wrong=wrong, differences=last if wrong else "")
    printed = hashlib.sha256(done.stdout).hexdigest()[:16]
    return replace(outcome, result=f"{outcome.result}, printed {printed}", wrong=True if wrong else None, differences=last if wrong else "")


# In the process -----------------------------------------------------------------------------------------------------------


def _arguments(subject: ProgramSubject) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="consan run", allow_abbrev=False)
    options.add(parser, (*options.SESSION, *options.RUN, *options.RANKS), "checking")
    programs.add_words(parser)
    arguments = parser.parse_args([*subject.options, *([subject.flag] if subject.flag else []), *subject.words])
    options.fill(arguments, {})
    return arguments


def answer(job: Job, request: Request) -> Outcome:
    """Run the program in this process, and return the outcome."""
    subject = job.subject
    assert isinstance(subject, ProgramSubject)
    arguments = _arguments(subject)
    arguments.seed = request.seed
    native = programs.find_native(arguments)
    if native is not None:
        status, report, _ = run_native(native, SessionOptions.in_arguments(arguments), delays=True)
        return replace(outcome_of(finish(report, job.rules), (), whole=request.whole), result=f"exit {status}")
    program, session = programs.find_program(arguments), open_session(SessionOptions.in_arguments(arguments))
    device = session.device
    if not device.backend.seeded:
        device.delay(request.seed)
    steering = Steering(request, device)
    launched: list[Report] = []  # by consan.launch, each in a session of its own
    api.OBSERVERS.append(launched.append)
    with steering.steer():
        ended = programs.run_program(program, session, arguments.ranks)
    if ended.failure is not None:
        return Outcome(status=ERROR if ended.failure.exit_code == 70 else REFUSED, detail=str(ended.failure))
    report = api.together(launched, session.report())
    outcome = outcome_of(finish(report, job.rules), session.watch.endings, whole=request.whole)
    if outcome.status != "ok":
        return outcome
    decisions, described = tuple(steering.recorded), steering.described()
    return replace(outcome, result=f"exit {ended.status}", kernels=steering.kernels(), decisions=decisions, described=described)


def main(given: str, into: str) -> None:
    """Answer the request in a file."""
    job, request = pickle.loads(Path(given).read_bytes())
    try:
        outcome = answer(job, request)
    except ConsanError as error:
        outcome = Outcome(status=ERROR if error.exit_code == 70 else REFUSED, detail=str(error))
    Path(into).write_bytes(pickle.dumps(outcome))


if __name__ == "__main__":
    main(*sys.argv[1:])
