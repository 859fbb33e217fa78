"""The functions of `torch.distributed` between the ranks of one process. All of them wait for all ranks, also with `async_op`."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Final

from consan._errors import NotSupported
from consan.ranks.crew import Crew

REDUCTIONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "SUM": operator.add,
    "AVG": operator.add,
    "PRODUCT": operator.mul,
    "MAX": lambda one, other: one * (one >= other) + other * (one < other),
    "MIN": lambda one, other: one * (one <= other) + other * (one > other),
}


class DoneWork:
    """What an asynchronous collective returns: it is done."""

    def wait(self, timeout: Any = None) -> bool:
        """It is done."""
        return True

    def is_completed(self) -> bool:
        """It is done."""
        return True


class World:
    """The group of all ranks."""

    group_name = "0"

    def __init__(self, crew: Crew) -> None:
        self._crew = crew

    def rank(self) -> int:
        """The number of the rank that runs."""
        return self._crew.rank

    def size(self) -> int:
        """The number of ranks."""
        return self._crew.count


class Collectives:
    """The collectives of a crew."""

    def __init__(self, crew: Crew) -> None:
        self._crew, self.world = crew, World(crew)
        self._begun: set[int] = set()  # ranks that have initialised

    def functions(self) -> dict[str, Any]:
        """By the names that they have in `torch.distributed`."""
        crew = self._crew
        return {
            "init_process_group": self._init,
            "is_initialized": lambda: crew.rank in self._begun,
            "is_available": lambda: True,
            "destroy_process_group": lambda group=None: self._begun.discard(crew.rank),
            "get_rank": lambda group=None: self._all(group).rank(),
            "get_world_size": lambda group=None: self._all(group).size(),
            "get_backend": lambda group=None: "nccl",
            "new_group": self._group,
            "group": SimpleNamespace(WORLD=self.world),
            "GroupMember": SimpleNamespace(WORLD=self.world),
            "ReduceOp": SimpleNamespace(**{name: name for name in REDUCTIONS}),
            "barrier": self._barrier,
            "all_reduce": self._all_reduce,
            "all_gather": self._all_gather,
            "all_gather_into_tensor": self._all_gather_into,
            "all_gather_object": self._all_gather_object,
            "broadcast": self._broadcast,
            "broadcast_object_list": self._broadcast_objects,
        }

    def _all(self, group: Any) -> World:
        """The group of all ranks. Refuses others."""
        if group is not None and group is not self.world:
            raise NotSupported("torch.distributed: with --ranks there is one group, of all ranks")
        return self.world

    def _init(self, *args: Any, **how: Any) -> None:
        self._begun.add(self._crew.rank)
        self._crew.meet("init_process_group")

    def _group(self, ranks: Sequence[int] | None = None, *args: Any, **how: Any) -> World:
        if ranks is not None and sorted(ranks) != list(range(self._crew.count)):
            raise NotSupported(f"torch.distributed.new_group({list(ranks)}): with --ranks there is one group, of all ranks")
        return self.world

    def _met(self, what: str, group: Any, given: Any = None) -> list[Any]:
        """Wait for all ranks at a collective. Gives the value of each rank."""
        self._all(group)
        found: list[Any] = self._crew.meet(what, given)
        return found

    def _barrier(self, group: Any = None, async_op: bool = False, device_ids: Any = None) -> Any:
        self._met("barrier", group)
        return DoneWork() if async_op else None

    def _all_reduce(self, tensor: Any, op: Any = "SUM", group: Any = None, async_op: bool = False) -> Any:
        name = str(op).rpartition(".")[2]
        if name not in REDUCTIONS:
            raise NotSupported(f"torch.distributed.all_reduce: {op} is not supported with --ranks")
        found = self._met(f"all_reduce ({name})", group, tensor.clone())
        total = functools.reduce(REDUCTIONS[name], found)
        tensor.copy_(total / self._crew.count if name == "AVG" else total)
        return DoneWork() if async_op else None

    def _all_gather(self, tensors: Any, tensor: Any, group: Any = None, async_op: bool = False) -> Any:
        for to, given in zip(tensors, self._met("all_gather", group, tensor.clone()), strict=True):
            to.copy_(given)
        return DoneWork() if async_op else None

    def _all_gather_into(self, output: Any, tensor: Any, group: Any = None, async_op: bool = False) -> Any:
        parts = output.reshape(self._crew.count, -1)
        for rank, given in enumerate(self._met("all_gather_into_tensor", group, tensor.clone())):
            parts[rank] = given.reshape(-1)
        return DoneWork() if async_op else None

    def _all_gather_object(self, found: list[Any], given: Any, group: Any = None) -> None:
        found[:] = self._met("all_gather_object", group, given)

    def _broadcast(self, tensor: Any, src: int = 0, group: Any = None, async_op: bool = False) -> Any:
        tensor.copy_(self._met(f"broadcast from rank {src}", group, tensor.clone())[src])
        return DoneWork() if async_op else None

    def _broadcast_objects(self, objects: list[Any], src: int = 0, group: Any = None, device: Any = None) -> None:
        objects[:] = self._met(f"broadcast_object_list from rank {src}", group, list(objects))[src]
