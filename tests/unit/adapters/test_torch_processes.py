"""`torch.distributed` on GPUs: which launches of two processes its calls order. A made-up torch; both processes are in this one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1] / "session"))
from planted import plant
from test_processes import Clock, Rank, compared

from consan.adapters import processes
from consan.adapters.processes import TorchProcesses
from consan.session.comparing import process_log


class Work:
    """An operation that has begun."""

    def wait(self) -> bool:
        return True

    def synchronize(self) -> None:
        """Nobody does anything."""

    def is_completed(self) -> bool:
        return True


class Group:
    """Ranks of a program. `batching`: what is sent and received has no work of its own; `work`: the class of work of the process."""

    work = Work

    def __init__(self, rank: int, name: str) -> None:
        self.group_name, self._rank, self.batching = name, rank, False

    def rank(self) -> int:
        return self._rank

    def send(self, tensors: list[Any], peer: int, tag: int) -> Work | None:
        return None if self.batching else self.work()

    recv = send


def made_up(rank: int) -> Any:
    """A module with what stands in `torch.distributed`. An asynchronous collective returns its work."""

    def works(async_op: bool) -> Any:
        return module.Work() if async_op else None

    def batch_isend_irecv(ops: list[Callable[[], Any]]) -> list[Any]:
        module.group.WORLD.batching = True
        for op in ops:
            op()
        module.group.WORLD.batching = False
        return [module.Work()]

    module: Any = ModuleType("torch.distributed")
    module.Work = type("Work", (Work,), dict(vars(Work)))  # each process has its own
    module.ProcessGroup = type("Group", (Group,), {**vars(Group), "work": module.Work})
    module.group = SimpleNamespace(WORLD=module.ProcessGroup(rank, "0"))
    module.get_backend, module.get_rank = lambda group: "gloo" if group.group_name == "hosts" else "nccl", lambda: rank
    module.all_reduce = lambda tensor, op=None, group=None, async_op=False: works(async_op)
    module.barrier = lambda group=None, async_op=False, device_ids=None: works(async_op)
    module.broadcast = lambda tensor, src=None, group=None, async_op=False, group_src=None: works(async_op)
    module.reduce = lambda tensor, dst=None, op=None, group=None, async_op=False, group_dst=None: works(async_op)
    module.batch_isend_irecv = batch_isend_irecv
    return module


def made_up_memory() -> Any:
    """`torch.distributed._symmetric_memory`: a buffer that nobody touches."""

    class Handle(SimpleNamespace):
        __hash__ = object.__hash__  # those of torch are keys

        def barrier(self, channel: int = 0) -> None:
            """Nobody waits."""

    def rendezvous(tensor: Any, group: Any = None) -> Any:
        places = {"buffer_ptrs": [1 << 50, 1 << 51], "signal_pad_ptrs": [1 << 52, 1 << 53]}
        return Handle(rank=tensor.rank, world_size=2, buffer_size=64, signal_pad_size=64, **places)

    module: Any = ModuleType("torch.distributed._symmetric_memory")
    module.empty, module.rendezvous = lambda *size: None, rendezvous
    return module


class Member:
    """A process with its torch. `current`: the stream that is current; `now`: whose calls they are."""

    def __init__(self, rank: int, clock: Clock, now: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rank, self.dist, self.seam, self.current, self.now = Rank(rank, clock), made_up(rank), TorchProcesses(), 0, now
        self.number, self.other = rank, self.rank.framework.calls.stream()
        memory = made_up_memory()
        for module in (self.dist, memory):
            monkeypatch.setitem(sys.modules, module.__name__, module)
        session: Any = SimpleNamespace(here=lambda: SimpleNamespace(followed=self.rank.streams))
        self.seam.install(session)
        self.handle = memory.rendezvous(SimpleNamespace(rank=rank, data_ptr=lambda: 0, element_size=lambda: 4), "0")

    def in_other_stream(self, call: Callable[[], Any]) -> Any:
        self.current = self.other
        call()
        self.current = 0

    def passes(self, sender: int, receiver: int) -> Any:
        """The work of a rank where one sends to the other."""
        group = self.dist.group.WORLD
        return group.send([], receiver, 0) if self.number == sender else group.recv([], sender, 0)

    def synchronizes(self) -> Any:
        return self.rank.framework.calls.call("cuCtxSynchronize")

    def in_subgroup(self) -> None:
        """A collective of a group that rank 0 is not in."""
        group = self.dist.ProcessGroup(0, "1") if self.number else None
        self.dist.all_reduce([], group=group or object())

    def batch(self) -> Any:
        """Each sends to the other and receives, in one."""
        (work,) = self.dist.batch_isend_irecv([lambda: self.passes(0, 1), lambda: self.passes(1, 0)])
        return work


@pytest.fixture
def members(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Member]]:
    monkeypatch.setattr(process_log, "now", clock := Clock())
    now = SimpleNamespace()
    stream = SimpleNamespace(current_stream=lambda: SimpleNamespace(cuda_stream=now.of.current))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=stream))  # type: ignore[arg-type]
    found = [Member(rank, clock, now, monkeypatch) for rank in (0, 1)]
    yield found
    for each in found:
        each.seam.remove()


def judged(members: list[Member], folder: Path, between: Callable[[Member], Any]) -> tuple[bool, bool]:
    """Rank 0 writes what rank 1 reads behind `between`. Whether nothing is found, and no order missing."""
    members[0].rank.launch("fills")
    for each in members:
        each.now.of = each
        between(each)
    members[1].rank.launch("reads", at=10)
    findings, reasons = compared([each.rank for each in members], folder)
    return not findings, not reasons


def _message_behind(member: Member) -> None:
    """A batch is waited for, and not the message that comes after it."""
    begun = member.dist.batch_isend_irecv([lambda: member.passes(1, 0)])
    member.passes(0, 1)
    begun[0].wait()


def _unrelated(member: Member) -> None:
    """Two collectives; the work of the first one is waited for."""
    first = member.dist.all_reduce([], async_op=True)
    member.dist.all_reduce([], async_op=True)
    first.wait()


ORDERS: dict[str, Callable[[Member], Any]] = {
    "a collective": lambda member: member.dist.all_reduce([]),
    "a barrier": lambda member: member.dist.barrier(),
    "a barrier of the memory": lambda member: member.handle.barrier(),
    "a barrier of the memory, once more": lambda member: [member.handle.barrier(), member.handle.barrier()],
    "work that is waited for": lambda member: member.dist.all_reduce([], async_op=True).wait(),
    "the first of two": _unrelated,
    "a barrier that the host waits for, in another stream": lambda member: member.in_other_stream(
        lambda: (member.rank.framework.calls.call("cuCtxSynchronize"), member.dist.barrier(async_op=True).wait())
    ),
    "a device that the host waits for": lambda member: (member.dist.all_reduce([], async_op=True), member.synchronizes()),
    "work that is over": lambda member: member.dist.all_reduce([], async_op=True).is_completed(),
    "work whose end the stream waits for": lambda member: member.dist.all_reduce([], async_op=True).synchronize(),
    "what its source broadcasts": lambda member: member.dist.broadcast([], 0),
    "what the first of a group broadcasts": lambda member: member.dist.broadcast([], group_src=0),
    "a reduction to the reader": lambda member: member.dist.reduce([], 1),
    "a message": lambda member: member.passes(0, 1).wait(),
    "a message that the device waits for": lambda member: (member.passes(0, 1), member.synchronizes()),
    "a batch": lambda member: member.batch().wait(),
}
NO_ORDERS: dict[str, Callable[[Member], Any]] = {
    "work that nobody waits for": lambda member: member.dist.all_reduce([], async_op=True),
    "an asynchronous barrier": lambda member: member.dist.barrier(async_op=True),
    "a collective in another stream": lambda member: member.in_other_stream(lambda: member.dist.all_reduce([])),
    "work that another stream waits for": lambda member: member.in_other_stream(member.dist.all_reduce([], async_op=True).wait),
    "a device that the host waits for before": lambda member: (member.synchronizes(), member.dist.all_reduce([], async_op=True)),
    "what the reader broadcasts": lambda member: member.dist.broadcast([], 1),
    "what the second of a group broadcasts": lambda member: member.dist.broadcast([], group_src=1),
    "a reduction to the writer": lambda member: member.dist.reduce([], 0),
    "a message the other way": lambda member: member.passes(1, 0).wait(),
    "a message that nobody waits for": lambda member: member.passes(0, 1),
    "a batch that nobody waits for": Member.batch,
    "a message behind a batch": _message_behind,
    "a collective of others": Member.in_subgroup,
}


@pytest.mark.parametrize("order", [*ORDERS, *NO_ORDERS])
def test_what_a_collective_orders(members: list[Member], tmp_path: Path, order: str) -> None:
    assert judged(members, tmp_path, (ORDERS | NO_ORDERS)[order]) == (True, order in ORDERS)


# By fault: where it is planted, and an order that it changes.
FAULTS: dict[str, tuple[Any, str, str, str, str]] = {
    "the stream waits for work where that begins": (
        process_log, "            return made\n", "            return before.wait(made) or made\n", "ProcessExchanges.began",
        "work that nobody waits for",
    ),
    "work runs in no stream": (
        processes, "if not exchange.on_host:", "if False:", "TorchProcesses._begins", "a device that the host waits for",
    ),
    "all wait for all in a broadcast": (processes, "if name not in _ROOTS:", "if True:", "_directions", "what the reader broadcasts"),
    "those of a message wait for each other": (
        processes, "_Exchange(key, on_host, sends=sends, receives=not sends)", "_Exchange(key, on_host)",
        "TorchProcesses._point_to_point", "a message the other way",
    ),
    "a batch goes on": (processes, "self._batch = None", "pass", "TorchProcesses._batched", "a message behind a batch"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_seen(members: list[Member], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    *planted, order = FAULTS[fault]
    plant(monkeypatch, *planted)
    assert judged(members, tmp_path, (ORDERS | NO_ORDERS)[order]) == (True, order in NO_ORDERS)
