"""Several streams of a rank are compared with each other, and with those of other ranks, by the order that the program makes (R-RK5)."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from planted import plant
from test_launches_of_ranks import FILL, NOTHING, RACE, TAKE, WRITE, launches, situations

from consan.adapters.distributed import collectives, nvshmem, operations, order, torch_streams
from consan.reports.model import Report
from consan.session.comparing import program_streams, rank_launches

OWN = ("global-race", "no-stream-edge")
SET, TAKE_OWN = "mine[i] = i;", "values[i] = mine[i];"
HALF, REST = "if (i < 16) values[i] = 0;", "if (i >= 16) mine[i] = values[i];"


def steps_of(torch: Any, data: Any, handle: Any) -> dict[str, Callable[[], Any]]:
    """Streams a and b of the rank, and operations in the current one."""
    import nvshmem.core
    import torch.distributed as dist

    torch.cuda.synchronize()
    a, b, default = torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.current_stream()
    there, works, event = torch.zeros(32, dtype=torch.float32), list[Any](), torch.cuda.Event()
    torch.cuda.synchronize()
    peer = 1 - handle.rank
    return {
        "use a": lambda: torch.cuda.set_stream(a),
        "use b": lambda: torch.cuda.set_stream(b),
        "use default": lambda: torch.cuda.set_stream(default),
        "b waits for a": lambda: b.wait_stream(a),
        "a waits for b": lambda: a.wait_stream(b),
        "b waits for an event of a": lambda: b.wait_event(a.record_event()),
        "record": event.record,
        "wait for what is recorded": event.wait,
        "the host waits for what is recorded": event.synchronize,
        "default waits for a": lambda: default.wait_stream(a),
        "b waits for default": lambda: b.wait_stream(default),
        "synchronize a": a.synchronize,
        "query b": b.query,
        "dist.barrier": dist.barrier,
        "there.fill_": lambda: there.fill_(1),
        "read there": lambda: there + 1,
        "read there to the host": there.tolist,
        "keep there for b": lambda: there.record_stream(b),
        "all_reduce there": lambda: dist.all_reduce(there),
        "begin all_reduce there": lambda: works.append(dist.all_reduce(there, async_op=True)),
        "end": lambda: works.pop().wait(),
        "send there": lambda: dist.send(there, peer),
        "begin send there": lambda: works.append(dist.isend(there, peer)),
        "begin receive there": lambda: works.append(dist.irecv(there, peer)),
        "receive mine": lambda: dist.recv(data, peer),
        "put mine on b": lambda: nvshmem.core.put(data, there, peer, stream=b),
        "quiet on b": lambda: nvshmem.core.quiet(stream=b),
        "nvshmem barrier": nvshmem.core.barrier_all,
        "nvshmem barrier on b": lambda: nvshmem.core.barrier_all(stream=b),
    }  # fmt: skip


def late_stream(torch: Any, data: Any, handle: Any) -> dict[str, Callable[[], Any]]:
    """A stream that is made late."""

    def new(*, waits: bool) -> None:
        made = torch.cuda.Stream()
        if waits:
            made.wait_stream(torch.cuda.current_stream())
        torch.cuda.set_stream(made)

    return {"new stream": lambda: new(waits=False), "new stream behind the current one": lambda: new(waits=True)}


def ran(*steps: str, **options: Any) -> Report:
    return launches(*steps, "synchronize", "dist.barrier", NOTHING, "dist.barrier", more=steps_of, **options)


# By program: what is found, and its steps.
PROGRAMS: dict[str, tuple[tuple[str, str] | None, tuple[str, ...]]] = {
    # Two streams of a rank.
    "two launches": (OWN, ("use a", WRITE, "use b", FILL)),
    "a stream that waits": (None, ("use a", WRITE, "b waits for a", "use b", FILL)),
    "a stream that waits too early": (OWN, ("b waits for a", "use a", WRITE, "use b", FILL)),
    "a stream that waits for the wrong one": (OWN, ("use a", WRITE, "b waits for default", "use b", FILL)),
    "a wait the other way": (OWN, ("use a", WRITE, "a waits for b", "use b", FILL)),
    "an event": (None, ("use a", WRITE, "b waits for an event of a", "use b", FILL)),
    "an event of the current stream": (None, ("use a", WRITE, "record", "use b", "wait for what is recorded", FILL)),
    "an event that is recorded too early": (OWN, ("use a", "record", WRITE, "use b", "wait for what is recorded", FILL)),
    "by way of the default stream": (None, ("use a", WRITE, "default waits for a", "b waits for default", "use b", FILL)),
    "the default stream does not wait": (OWN, ("use a", WRITE, "use default", FILL)),
    "the host waits for a stream": (None, ("use a", WRITE, "synchronize a", "use b", FILL)),
    "the host waits, and the default stream goes on": (None, ("use a", WRITE, "synchronize a", "use default", FILL)),
    "the host waits for the other stream": (OWN, ("use a", WRITE, "query b", "use b", FILL)),
    "the host waits for an event": (None, ("use a", WRITE, "record", "the host waits for what is recorded", "use b", FILL)),
    "the host waits for the device": (None, ("use a", WRITE, "synchronize", "use b", FILL)),
    "two reads": (None, ("use a", FILL.replace("mine[i]", "float own"), "use b", FILL.replace("mine[i]", "float own"))),
    "two parts": (None, ("use a", HALF, "use b", REST)),
    # Operations of torch.
    "two operations": (OWN, ("use a", "there.fill_", "use b", "read there")),
    "the same behind a wait": (None, ("use a", "there.fill_", "b waits for a", "use b", "read there")),
    "a read by the host": (None, ("use a", "there.fill_", "read there to the host", "use b", "read there")),
    "a read by the host in another stream": (OWN, ("use a", "there.fill_", "use b", "read there to the host")),
    "record_stream orders nothing": (OWN, ("use a", "there.fill_", "keep there for b", "use b", "read there")),
    # Collectives and messages.
    "a result of another stream": (OWN, ("use a", "all_reduce there", "use b", "read there")),
    "the same behind a wait for it": (None, ("use a", "all_reduce there", "b waits for a", "use b", "read there")),
    "a result before the wait": (OWN, ("use a", "begin all_reduce there", "read there", "end")),
    "the wait of another stream": (OWN, ("use a", "begin all_reduce there", "end", "use b", "read there")),
    "the wait of the stream that reads": (None, ("use a", "begin all_reduce there", "use b", "end", "read there")),
    "an operand of another stream": (OWN, ("use a", "there.fill_", "use b", "all_reduce there")),
    "a collective behind another one": (None, ("use a", "all_reduce there", "use b", "all_reduce there")),
    "a message from another stream": (OWN, ("use a", "there.fill_", "use b", "send there", "receive mine")),
    "the same behind a wait for that": (None, ("use a", "there.fill_", "b waits for a", "use b", "send there", "receive mine")),
    "a message that is read too early": (OWN, ("begin send there", "use a", "begin receive there", "use b", "read there", "end", "end")),
    # Between ranks.
    "a barrier in another stream": (RACE, ("use a", SET, "use default", "barrier", TAKE)),
    "a barrier behind the stream": (None, ("use a", SET, "default waits for a", "use default", "barrier", TAKE)),
    "behind a barrier of another stream": (RACE, ("use a", SET, "barrier", "use b", TAKE)),
    "behind a stream with a barrier": (None, ("use a", SET, "barrier", "b waits for a", "use b", TAKE)),
    "hosts that meet with work in another stream": (RACE, ("use a", SET, "use default", "dist.barrier", TAKE)),
    "hosts that meet behind a wait for it": (None, ("use a", SET, "synchronize a", "use default", "dist.barrier", TAKE)),
    "hosts that meet, then any stream": (None, ("use a", SET, "dist.barrier", "use b", TAKE)),
    "a collective in another stream": (RACE, ("use a", SET, "use default", "all_reduce", TAKE)),
    "a collective behind it": (None, ("use a", SET, "all_reduce", TAKE)),
    "a signal from another stream": (RACE, ("use a", SET, "use b", "put", "wait", TAKE)),
    "a signal from the stream": (None, ("use a", SET, "put", "use b", "wait", TAKE)),
    "a signal that another stream waits for": (RACE, ("use a", SET, "put", "use b", "wait", "use a", TAKE)),
    "a put in another stream": (RACE, ("put mine on b", "quiet on b", "barrier", TAKE_OWN)),
    "a put and a barrier of another stream": (RACE, ("put mine on b", "nvshmem barrier", TAKE_OWN, "nvshmem barrier on b")),
    "a put and a barrier of its stream": (None, ("put mine on b", "nvshmem barrier on b", "use b", TAKE_OWN)),
}  # fmt: skip
QUICK = (
    "two launches", "a stream that waits", "an event that is recorded too early", "the host waits for a stream", "two operations",
    "a result of another stream", "the wait of another stream", "the wait of the stream that reads", "a barrier in another stream",
    "a barrier behind the stream", "hosts that meet with work in another stream", "hosts that meet, then any stream",
)  # fmt: skip


@pytest.mark.parametrize("program", [pytest.param(each, marks=() if each in QUICK else pytest.mark.slow) for each in PROGRAMS])
def test_two_streams(program: str) -> None:
    found, steps = PROGRAMS[program]
    report = ran(*steps)
    assert situations(report) == ({found} if found else set()), str(report)
    assert report.verdict == ("violations" if found else "clean"), str(report)


def test_the_report_names_the_streams_and_the_rank() -> None:
    report = ran("use a", WRITE, "use b", FILL)
    text = " ".join(str(report).split())
    assert "tream 2 of rank 0 does not wait for stream 1 of rank 0" in text
    assert "(second.wait_stream(first))" in text
    assert {each.rank for each in report.findings[0].pair} == {0}


def test_the_report_names_the_stream_of_a_library() -> None:
    report = ran("use a", "begin all_reduce there", "read there", "end")
    assert "the stream of torch.distributed, group 0 of rank 0" in report.findings[0].message
    assert "work.wait()" in report.findings[0].fix


@pytest.mark.parametrize(("made", "complete"), [("new stream", False), ("new stream behind the current one", True)])
def test_a_stream_that_is_made_late(made: str, *, complete: bool) -> None:
    """It may run at the same time as what all others come behind, and what is no longer kept."""
    report = launches(FILL, "all_reduce", NOTHING, "all_reduce", NOTHING, made, TAKE, "synchronize", "barrier", more=late_stream)
    assert situations(report) == set()
    assert (report.verdict == "clean") is complete, str(report)


# By fault: the module, the text, what comes in its place, and a program whose report differs then.
FAULTS: dict[str, tuple[ModuleType, str, str, str]] = {
    "the current stream": (program_streams, "found or", "", "two launches"),
    "wait_stream": (torch_streams, "self.order.wait(stream.order)", "pass", "a stream that waits"),
    "the stream of an event": (
        torch_streams, "= (self.now.get() if", "= (self.now.session.streams.default if", "an event of the current stream"),
    "other memory than that of all": (rank_launches, "self.shared is None or self.own is None", "True", "two launches"),
    "the stream of a group": (collectives, "(self._crew.rank)) == 1\n        return", "(self._crew.rank)) >= 1\n        return",
                              "a collective behind another one"),
    "a library begins behind the current stream": (
        operations, "stream.wait(self.stream.record())", "pass", "the same behind a wait for that"),
    "the stream that waits for a work": (
        collectives, "lambda: self._streams.current().wait(over)", "lambda: None", "the wait of the stream that reads"),
    "hosts know what they have waited for": (collectives, "if name in _HOST_WAITS:", "if False:", "hosts that meet, then any stream"),
    "all streams are behind what a host knows": (
        program_streams, "| self._reached.get(None, NONE)", "", "the host waits, and the default stream goes on"),
    "what a stream sends": (order, "stream.record() if sends", "stream._timeline and None if sends", "a barrier behind the stream"),
    "the stream of a put": (nvshmem, "if handle is None else", "if True else", "a put and a barrier of its stream"),
}  # fmt: skip


@pytest.mark.parametrize("fault", [pytest.param(each, marks=pytest.mark.slow if number > 1 else ()) for number, each in enumerate(FAULTS)])
def test_a_planted_fault(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, old, new, program = FAULTS[fault]
    found, steps = PROGRAMS[program]
    plant(monkeypatch, module, old, new)
    report = ran(*steps)
    assert (situations(report), report.verdict) != ({found} if found else set(), "violations" if found else "clean")
