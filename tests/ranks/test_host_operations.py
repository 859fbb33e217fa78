"""Operations of the host of a rank on tensors of symmetric memory are compared with launches of other ranks, in its place (R-RK5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from crew_support import crew_of, run
from planted import plant
from test_launches_of_ranks import FILL, MEET, NOTHING, PUT, RACE, START, TAKE, launches, situations

from consan.adapters.distributed import collectives, operations, tensors
from consan.reports.model import Report
from consan.session.comparing import program_streams, rank_launches

# A read of rank 0 by rank 1, of rank 1 by rank 0, of its own by rank 1; a write by rank 0 to rank 1; a read of what the peer gives.
OF_0, OF_1, OWN_1 = (f"if (RANK == {rank}) {body}" for rank, body in ((1, TAKE), (0, TAKE), (1, "values[i] = mine[i];")))
TO_1, PARTS = f"if (RANK == 0) {PUT}", f"if (i / 16 == peer) {TAKE}"
READ_OWN, READ_LOW = "values[i] = mine[i];", "if (i < 16) values[i] = mine[i];"


def _steps(torch: Any, data: Any, handle: Any) -> dict[str, Callable[[], Any]]:
    """Operations on the buffer of the rank, and on that of the other one."""
    import torch.distributed as dist
    import torch.distributed._symmetric_memory as symm_mem

    peer, works = handle.get_buffer(1 - handle.rank, (32,), torch.float32), list[Any]()
    pad = handle.get_signal_pad(1 - handle.rank, (32,), torch.int32)
    other = torch.zeros(32, dtype=torch.float32)
    return {
        "copy_ to the peer": lambda: peer.copy_(other),
        "copy_ from the peer": lambda: other.copy_(peer),
        "copy_ of other memory": lambda: other.copy_(torch.ones(32, dtype=torch.float32)),
        "fill_": lambda: data.fill_(7),
        "zero_": data.zero_,
        "zero_ of the peer's signals": pad.zero_,
        "+=": lambda: peer.__iadd__(1),
        "out=": lambda: data.__class__.__array_ufunc__(peer, __import__("numpy").add, "__call__", other, other, out=(peer,)),
        "a slice": lambda: peer.__setitem__(slice(0, 16), 1),
        "the other half": lambda: peer.__setitem__(slice(16, 32), 1),
        "every second": lambda: peer[::2].fill_(1),
        "an element": lambda: peer.__setitem__(3, 1),
        "chosen elements": lambda: peer.__setitem__([3, 4], 1),
        "read an element": lambda: float(peer[3]),
        "read": peer.tolist,
        "read by arithmetic": lambda: peer * 2,
        "read to the host": lambda: peer.cpu().numpy()[0],
        "cat": lambda: torch.cat([peer, other]),
        "zeros_like": lambda: torch.zeros_like(peer),
        "all_reduce of it": lambda: dist.all_reduce(data),
        "begin all_reduce of it": lambda: works.append(dist.all_reduce(data, async_op=True)),
        "end all_reduce of it": lambda: works.pop().wait(),
        "broadcast from 0": lambda: dist.broadcast(data, 0),
        "begin broadcast from 0": lambda: works.append(dist.broadcast(other, 0, async_op=True)),
        "end": lambda: works.pop().wait(),
        "all_gather in place": lambda: dist.all_gather_into_tensor(data, data[16 * handle.rank : 16 * handle.rank + 16]),
        "all_gather in place of views": lambda: dist.all_gather([data[:16], data[16:]], data[16 * handle.rank : 16 * handle.rank + 16]),
        "all_gather": lambda: dist.all_gather_into_tensor(data, other[:16]),
        "send": lambda: dist.send(other, 1 - handle.rank),
        "receive into it": lambda: dist.recv(data, 1 - handle.rank),
        "all_reduce by symm_mem": lambda: torch.ops.symm_mem.two_shot_all_reduce_(data, "sum", "0"),
        "all_reduce of a copy": lambda: torch.ops.symm_mem.one_shot_all_reduce_copy(data, other, "sum", "0"),
        "another rendezvous": lambda: symm_mem.rendezvous(symm_mem.empty(4, dtype=torch.float32), dist.group.WORLD),
    }


def report_of(*steps: str) -> Report:
    return launches(*steps, "barrier", more=_steps)


# By program: whether it is right.
PROGRAMS: dict[str, tuple[bool, tuple[str, ...]]] = {
    "a copy into what the peer reads": (False, (READ_OWN, "copy_ to the peer")),
    "the same behind a barrier": (True, (READ_OWN, "barrier", "copy_ to the peer")),
    "a copy before the peer reads": (False, ("copy_ to the peer", READ_OWN)),
    "the same before a barrier": (True, ("copy_ to the peer", "barrier", READ_OWN)),
    "a copy to other memory": (True, (READ_OWN, "copy_ of other memory")),
    "a copy out of what the peer writes": (False, (FILL, "copy_ from the peer")),
    "a copy out of what the peer reads": (True, (READ_OWN, "copy_ from the peer")),
    "fill_ for the next round": (False, (TAKE, "fill_")),
    "fill_ behind a barrier at the end of a kernel": (True, (TAKE + MEET, "fill_")),
    "fill_ before a barrier at the begin of a kernel": (True, ("fill_", MEET + TAKE)),
    "fill_ before a relaxed start": (False, ("fill_", START.replace("SEMANTICS", "relaxed") + TAKE)),
    "fill_ before a signal of the host": (True, ("fill_", "put", "wait", TAKE)),
    "fill_ behind a signal of the host": (False, ("put", "fill_", "wait", TAKE)),
    "zero_ of what the peer reads": (False, (TAKE, NOTHING, "zero_")),
    "zero_ of signals in use": (False, (MEET, "zero_ of the peer's signals")),
    "zero_ of signals behind a barrier": (True, (MEET, "barrier", "zero_ of the peer's signals")),
    "in place": (False, (READ_OWN, "+=")),
    "into a result": (False, (READ_OWN, "out=")),
    "a slice": (False, (READ_LOW, "a slice")),
    "another slice": (True, (READ_LOW, "the other half")),
    "every second element": (False, (READ_LOW, "every second")),
    "an element": (False, (READ_LOW, "an element")),
    "a read of an element": (False, (FILL, "read an element")),
    "a read by the host": (False, (FILL, "read")),
    "a read by arithmetic": (False, (FILL, "read by arithmetic")),
    "a read behind a barrier": (True, (FILL, "barrier", "read by arithmetic")),
    "a copy to the host": (False, (FILL, "read to the host")),
    "cat": (False, (FILL, "cat")),
    "the shape alone": (True, (FILL, "zeros_like")),
    "two operations": (False, ("fill_", "copy_ to the peer")),
    "two operations and a barrier": (True, (NOTHING, "fill_", "barrier", "copy_ to the peer")),
    "fill_ before hosts meet": (False, ("fill_", "another rendezvous", TAKE)),
    "fill_ and a wait before hosts meet": (True, ("fill_", "synchronize", "another rendezvous", TAKE)),
    "a collective writes what the peer reads next": (False, ("all_reduce of it", TAKE)),
    "a collective and a barrier": (True, ("all_reduce of it", "barrier", TAKE)),
    "a collective that is waited for too late": (False, ("begin all_reduce of it", "put", "wait", "end all_reduce of it", TAKE)),
    "a collective that is waited for before a signal": (True, ("begin all_reduce of it", "end all_reduce of it", "put", "wait", TAKE)),
    "the source of a broadcast is read": (True, (OF_0, "broadcast from 0")),
    "the target of a broadcast is read behind it": (False, ("broadcast from 0", OF_1)),
    "what the source of an asynchronous broadcast has written": (True, (TO_1, "begin broadcast from 0", "end", OWN_1)),
    "the same before the wait": (False, (TO_1, "begin broadcast from 0", OWN_1, "end")),
    "a part that is gathered in place is read": (True, ("all_gather in place", PARTS)),
    "views that are gathered in place are read": (True, ("all_gather in place of views", PARTS)),
    "parts that are gathered are read": (False, ("all_gather", PARTS)),
    "a message into what its sender has written": (True, (PUT, "send", "receive into it")),
    "a message into what its sender writes": (False, ("send", PUT, "receive into it")),
    "a kernel of torch on symmetric memory": (True, (FILL, "all_reduce by symm_mem", TAKE)),
    "its copy before it waits": (False, (TAKE, "all_reduce of a copy")),
}
QUICK = (
    "a copy into what the peer reads", "the same behind a barrier", "fill_ for the next round",
    "fill_ behind a barrier at the end of a kernel",
    "fill_ before a relaxed start", "another slice", "an element", "two operations", "fill_ and a wait before hosts meet",
    "a collective that is waited for too late", "a collective that is waited for before a signal", "its copy before it waits",
)  # fmt: skip


@pytest.mark.parametrize("program", [pytest.param(each, marks=() if each in QUICK else pytest.mark.slow) for each in PROGRAMS])
def test_operations_and_launches(program: str) -> None:
    right, steps = PROGRAMS[program]
    report = report_of(*steps)
    assert situations(report) == (set() if right else {RACE}), str(report)
    assert report.verdict == ("clean" if right else "violations"), str(report)


def test_elements_that_values_choose_are_not_known() -> None:
    report = report_of(READ_LOW, "chosen elements")
    assert (situations(report), report.verdict) == (set(), "incomplete")
    assert "which bytes an operation of torch touches" in str(report)


def test_the_report_names_the_operation_its_line_and_the_buffer() -> None:
    report = report_of(READ_OWN, "copy_ to the peer")
    _, second = report.findings[0].pair
    assert (second.op, second.role) == ("torch's copy_", "write")
    assert second.file.endswith("test_host_operations.py")
    assert 'elements 0..31 of symmetric buffer "data", rank' in second.name


def test_a_rank_that_ends_while_another_copies_into_its_memory() -> None:
    assert situations(launches("copy_ to the peer", more=_steps)) == {("global-race", "rank-ended")}


def test_operations_in_a_loop_count_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []
    monkeypatch.setattr(rank_launches, "span_of", lambda rows: compared.append(len(rows)) or (0, 0))

    def body() -> None:
        import torch
        import torch.distributed as dist
        import torch.distributed._symmetric_memory as symm_mem

        data = symm_mem.empty(32, dtype=torch.float32)
        symm_mem.rendezvous(data, dist.group.WORLD)
        for _ in range(100):
            data.fill_(1)

    with crew_of(2) as (crew, session):
        run(crew, body)
        assert session.report().findings == ()
    assert 0 < len(compared) <= 2 * 4


# No wait is left for the program.
AT_ONCE = (
    "if later:\n                return work\n            work.wait()",
    "work.wait()\n            if later:\n                return work",
)
SEEN = "part.seen)", "len(self._parts[self._crew.rank]) == 1)"
OVER = "made.streams[rank].launched(number, place)", "pass"
COMPARED = "if order is not None and (reads", "if False and (reads"
# By fault: the module, the text, what comes in its place, and a program whose report differs then.
FAULTS: dict[str, tuple[Any, str, str, str]] = {
    "operations are not compared": (operations, *COMPARED, "a copy into what the peer reads"),
    "an operation is never over": (rank_launches, *OVER, "fill_ before a signal of the host"),
    "a collective is over at once": (collectives, *AT_ONCE, "a collective that is waited for too late"),
    "a slice is all": (tensors, "[value], [self if part is None else part]", "[value], [self]", "another slice"),
    "torch's kernel copies behind the others": (operations, *SEEN, "its copy before it waits"),
    "the host does not wait": (program_streams, "known[None] = timeline.left(", "str(", "fill_ and a wait before hosts meet"),
}  # fmt: skip


@pytest.mark.parametrize("fault", [pytest.param(each, marks=pytest.mark.slow if number else ()) for number, each in enumerate(FAULTS)])
def test_a_planted_fault(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, old, new, program = FAULTS[fault]
    plant(monkeypatch, module, old, new)
    right, steps = PROGRAMS[program]
    assert (situations(report_of(*steps)) == set()) is not right
