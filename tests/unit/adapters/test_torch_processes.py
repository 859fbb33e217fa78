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


class Group:
    """All ranks."""

    group_name = "0"


def made_up() -> Any:
    """A module with what stands in `torch.distributed`. An asynchronous collective returns its work."""

    class Work:
        def wait(self) -> bool:
            return True

    def all_reduce(tensor: Any, op: Any = None, group: Any = None, async_op: bool = False) -> Any:
        return Work() if async_op else None

    def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Any:
        return Work() if async_op else None

    module: Any = ModuleType("torch.distributed")
    module.ProcessGroup, module.Work, module.group = Group, Work, SimpleNamespace(WORLD=Group())
    module.get_backend = lambda group: "nccl"
    module.all_reduce, module.barrier = all_reduce, barrier
    return module


def made_up_memory() -> Any:
    """`torch.distributed._symmetric_memory`: a buffer that nobody touches."""

    class Handle(SimpleNamespace):
        pass

    def rendezvous(tensor: Any, group: Any = None) -> Any:
        places = {"buffer_ptrs": [1 << 50, 1 << 51], "signal_pad_ptrs": [1 << 52, 1 << 53]}
        return Handle(rank=tensor.rank, world_size=2, buffer_size=64, signal_pad_size=64, **places)

    module: Any = ModuleType("torch.distributed._symmetric_memory")
    module.empty, module.rendezvous = lambda *size: None, rendezvous
    return module


class Member:
    """A process with its torch. `current`: the stream that is current; `now`: whose calls they are."""

    def __init__(self, rank: int, clock: Clock, now: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rank, self.dist, self.seam, self.current, self.now = Rank(rank, clock), made_up(), TorchProcesses(), 0, now
        self.other = self.rank.framework.calls.stream()
        memory = made_up_memory()
        for module in (self.dist, memory):
            monkeypatch.setitem(sys.modules, module.__name__, module)
        session: Any = SimpleNamespace(here=lambda: SimpleNamespace(followed=self.rank.streams))
        self.seam.install(session)
        memory.rendezvous(SimpleNamespace(rank=rank, data_ptr=lambda: 0, element_size=lambda: 4), "0")

    def in_other_stream(self, call: Callable[[], Any]) -> Any:
        self.current = self.other
        call()
        self.current = 0


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


def _unrelated(member: Member) -> None:
    """Two collectives; the work of the first one is waited for."""
    first = member.dist.all_reduce([], async_op=True)
    member.dist.all_reduce([], async_op=True)
    first.wait()


ORDERS: dict[str, Callable[[Member], Any]] = {
    "a collective": lambda member: member.dist.all_reduce([]),
    "a barrier": lambda member: member.dist.barrier(),
    "work that is waited for": lambda member: member.dist.all_reduce([], async_op=True).wait(),
    "the first of two": _unrelated,
    "a barrier that the host waits for, in another stream": lambda member: member.in_other_stream(
        lambda: (member.rank.framework.calls.call("cuCtxSynchronize"), member.dist.barrier(async_op=True).wait())
    ),
}
NO_ORDERS: dict[str, Callable[[Member], Any]] = {
    "work that nobody waits for": lambda member: member.dist.all_reduce([], async_op=True),
    "an asynchronous barrier": lambda member: member.dist.barrier(async_op=True),
    "a collective in another stream": lambda member: member.in_other_stream(lambda: member.dist.all_reduce([])),
    "work that another stream waits for": lambda member: member.in_other_stream(member.dist.all_reduce([], async_op=True).wait),
}


@pytest.mark.parametrize("order", [*ORDERS, *NO_ORDERS])
def test_what_a_collective_orders(members: list[Member], tmp_path: Path, order: str) -> None:
    assert judged(members, tmp_path, (ORDERS | NO_ORDERS)[order]) == (True, order in ORDERS)


def test_a_fault_is_seen(members: list[Member], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream waits for an asynchronous collective where that begins."""
    plant(monkeypatch, processes, "waits=False, receives=False)", "waits=False)", "TorchProcesses._begins")
    assert judged(members, tmp_path, NO_ORDERS["work that nobody waits for"]) == (True, True)
