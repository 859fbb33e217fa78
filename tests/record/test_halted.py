"""Replays end when their time is over, and at Ctrl-C; what they have found by then is reported."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

import numpy as np
import pytest

import consan
from consan.checker.compiled.build import library
from consan.checker.compiled.cores import replayed
from consan.checker.compiled.layouts import Status
from consan.checker.compiled.patience import Patience
from consan.checker.compiled.replay import History, Replayed, replay
from consan.checker.judging import recorder
from consan.checker.judging.grid import HALTED, check_grid, replay_gaps
from consan.instrument import effects
from consan.instrument.effects import WordValue
from consan.instrument.record.families.global_memory import Mode
from consan.instrument.record.text.templates import END, Template, tables
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

READ = effects.Read(site=1, at=WordValue(0, 1), bytes=4, element=4)
WRITE = effects.Write(site=2, at=WordValue(0, 1), bytes=4, element=4)
TABLES = tables([Template(1, 2, [WRITE]), Template(2, 2, [READ])])
ROUNDS, WARPS = 20_000, 32
DELAYS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)  # seconds


def long() -> History:
    """A race in the first events of two lanes, and then many more: a replay takes seconds."""
    log = np.zeros((WARPS, 2 * ROUNDS + 4, 32), np.uint32)
    log[:, 0 : 2 * ROUNDS : 2], log[:, 1 : 2 * ROUNDS : 2] = 2, 1024 + 8
    log[0, 0, 0] = 1
    log[:, 2 * ROUNDS] = END
    library()  # its compilation counts for nobody
    return History(log, WARPS * 32, 1024, 64)


def within(patience: Patience, history: History, begun: Callable[[], None] = lambda: None) -> Replayed:
    """As far as a replay comes. `begun`: called by the thread that replays."""

    def work() -> Replayed:
        begun()
        return replay(TABLES, history, descending=False, halt=patience.halt)

    (done,) = replayed(work, [()], history.log.nbytes, patience)
    return done


def kinds(done: Replayed) -> set[int]:
    return {int(record["kind"]) for record in done.records}


def _halted(attempt: Callable[[float], Replayed]) -> None:
    """Some attempt is ended between the race, which comes first, and the last event. How long that takes depends on the machine."""
    for seconds in DELAYS:
        done = attempt(seconds)
        assert kinds(done) <= {1}
        if done.status == Status.HALTED and kinds(done):
            return
    pytest.fail("no replay was ended in its midst")


def test_the_time_is_over() -> None:
    history = long()
    _halted(lambda seconds: within(Patience(seconds), history))


@pytest.mark.usefixtures("ctrl_c")
def test_control_c() -> None:
    history = long()

    def attempt(seconds: float) -> Replayed:
        patience = Patience(600.0)
        timer = threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT))
        done = within(patience, history, timer.start)
        timer.cancel()
        assert patience.interrupted == (done.status == Status.HALTED)
        return done

    _halted(attempt)


def test_of_a_whole_launch() -> None:
    patience = Patience(60.0)
    patience.halt.value = 1
    done = check_grid(TABLES, [long(), long()], Mode.ALONE, whole=False, patience=patience)
    assert HALTED in replay_gaps(done, ended=True)


SOURCE = """
extern "C" __global__ void kernel(int* out) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    out[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x ^ 32];
}
"""


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_launch_whose_replays_are_ended(interrupted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its findings are kept, and the report says that not all was checked."""

    def halted(replay: Callable[..., Replayed], tasks: list[tuple[object, ...]], nbytes: int, patience: Patience) -> list[Replayed]:
        done = [replay(*task) for task in tasks]
        patience.halt.value, patience.interrupted = 1, interrupted
        return [Replayed(Status.HALTED, each.records, each.events, by_address=False, overtaken=False) for each in done]

    monkeypatch.setattr(recorder, "replayed", halted)
    session = Session(SessionOptions(device="cpu", engine="record", global_memory="off"))
    prepared = session.prepare(consan.Kernel(SOURCE, entry="kernel").ptx)
    out = session.backend.alloc(4096).to_bytes(8, "little")
    if interrupted:
        with pytest.raises(KeyboardInterrupt):
            session.launch(prepared, "kernel", (1, 1, 1), (64, 1, 1), [out])
    else:
        session.launch(prepared, "kernel", (1, 1, 1), (64, 1, 1), [out])
    report = session.report()
    assert (report.verdict, [finding.kind for finding in report.findings]) == ("violations", ["data-race"])
    assert any("replayed in part" in why for why in report.incomplete), report.incomplete
