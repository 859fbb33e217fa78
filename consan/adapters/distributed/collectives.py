"""The functions of `torch.distributed` between the ranks of one process.

A collective waits for its ranks and has its result where it is made, also with `async_op`; but then the launches of the rank come behind
those of the others only from `work.wait()` or `torch.cuda.synchronize()` on, as on GPUs. Some have one sender or one receiver. A `send`
waits for nobody.

Not handled: messages from any rank.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

from consan._errors import NotSupported, UsageError
from consan.adapters.distributed.operations import HostOperations
from consan.adapters.distributed.order import meets
from consan.ranks.crew import Crew

REDUCTIONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "SUM": operator.add,
    "AVG": operator.add,
    "PRODUCT": operator.mul,
    "MAX": lambda one, other: one * (one >= other) + other * (one < other),
    "MIN": lambda one, other: one * (one <= other) + other * (one > other),
}


_NO_MEMBER: Final = -100  # torch's group for a rank that is in none
Message = tuple[int, int, int, str]
"""Sender, receiver, tag and group."""


class BegunWork:
    """The work that an asynchronous operation returns. `done`: is called once, where it is waited for."""

    def __init__(self, done: Callable[[], None]) -> None:
        self._done: Callable[[], None] | None = done

    def wait(self, timeout: Any = None) -> bool:
        """The next operations of the rank come behind it."""
        done, self._done = self._done, None
        if done is not None:
            done()
        return True

    def then(self, done: Callable[[], None]) -> None:
        """Add a call that is made where it is waited for."""
        first = self._done

        def both() -> None:
            if first is not None:
                first()
            done()

        self._done = both

    def is_completed(self) -> bool:
        """Waits for it, since a rank runs until it waits."""
        return self.wait()

    synchronize = wait


class RankGroup:
    """Some ranks, or all."""

    def __init__(self, crew: Crew, name: str, ranks: Sequence[int]) -> None:
        self._crew, self.group_name, self.ranks = crew, name, tuple(ranks)

    def rank(self) -> int:
        """The number in the group of the rank that runs; -1: it is not in the group."""
        return self.ranks.index(self._crew.rank) if self._crew.rank in self.ranks else -1

    def size(self) -> int:
        """The number of ranks."""
        return len(self.ranks)


@dataclass(frozen=True)
class PointToPoint:
    """`P2POp`: a part of a batch."""

    op: Callable[..., Any]
    tensor: Any
    peer: int | None = None
    group: Any = None
    tag: int = 0
    group_peer: int | None = None


class Collectives:
    """The collectives of a crew."""

    def __init__(self, crew: Crew, operations: HostOperations) -> None:
        self._operations = operations
        self._crew, self.world = crew, RankGroup(crew, "0", range(crew.count))
        self._begun: set[int] = set()  # ranks that have initialised
        self._groups: dict[str, RankGroup] = {}
        self._made: Counter[int] = Counter()  # of groups, by rank
        self._messages: dict[tuple[Message, int], tuple[Any, Any]] = {}  # the tensor, and what the sender did before
        self._sent: Counter[Message] = Counter()
        self._taken: Counter[Message] = Counter()

    def functions(self) -> dict[str, Any]:
        """By the names that they have in `torch.distributed`."""
        crew = self._crew
        collectives: dict[str, Callable[..., Any]] = {
            "barrier": self._barrier,
            "all_reduce": self._all_reduce,
            "reduce": self._reduce,
            "reduce_scatter_tensor": self._reduce_scatter,
            "all_gather": self._all_gather,
            "all_gather_into_tensor": self._all_gather_into,
            "all_gather_object": self._all_gather_object,
            "all_to_all_single": self._all_to_all,
            "broadcast": self._broadcast,
            "broadcast_object_list": self._broadcast_objects,
        }
        return {
            **{name: self._for_members(name, each) for name, each in collectives.items()},
            "init_process_group": self._init,
            "is_initialized": lambda: crew.rank in self._begun,
            "is_available": lambda: True,
            "destroy_process_group": lambda group=None: self._begun.discard(crew.rank),
            "get_rank": lambda group=None: -1 if group == _NO_MEMBER else self._of(group).rank(),
            "get_world_size": lambda group=None: self._of(group).size(),
            "get_process_group_ranks": lambda group=None: list(self._of(group).ranks),
            "get_global_rank": lambda group, group_rank: self._of(group).ranks[group_rank],
            "get_group_rank": lambda group, global_rank: self._of(group).ranks.index(global_rank),
            "get_backend": lambda group=None: "nccl",
            "new_group": self._group,
            "group": SimpleNamespace(WORLD=self.world),
            "GroupMember": SimpleNamespace(WORLD=self.world, NON_GROUP_MEMBER=_NO_MEMBER),
            "ReduceOp": SimpleNamespace(**{name: name for name in REDUCTIONS}),
            "Work": BegunWork,
            "send": lambda *args, **how: self._isend(*args, **how, begins=False).wait() and None,
            "isend": self._isend,
            "recv": self._recv,
            "irecv": self._irecv,
            "P2POp": PointToPoint,
            "batch_isend_irecv": self._batch,
        }

    def _for_members(self, name: str, collective: Callable[..., Any]) -> Callable[..., Any]:
        """A collective, which does nothing for a rank that is not in its group. Its writes are over behind its wait."""
        parameters = inspect.signature(collective)

        @functools.wraps(collective)
        def made(*args: Any, **how: Any) -> Any:
            given = parameters.bind(*args, **how).arguments
            group, begins = given.get("group"), list(_tensors(given.values())) if given.get("async_op") else ()
            if isinstance(group, int) and group == _NO_MEMBER:
                return None
            with self._operations.part_of(f"torch.distributed.{name}", pending=True, begins=begins) as begun:
                work = collective(*args, **how)
            if isinstance(work, BegunWork):
                work.then(lambda: self._operations.over(begun))
            else:
                self._operations.over(begun)
            return work

        return made

    def _of(self, group: Any) -> RankGroup:
        """The group that an argument names. The rank that runs is in it."""
        found = self.world if group is None else self._groups.get(group) if isinstance(group, str) else group
        if not isinstance(found, RankGroup):
            raise NotSupported(f"torch.distributed: {group!r} is no group that was made with --ranks")
        return found

    def _init(self, *args: Any, **how: Any) -> None:
        self._begun.add(self._crew.rank)
        self._crew.meet("init_process_group")

    def _group(self, ranks: Sequence[int] | None = None, *args: Any, **how: Any) -> RankGroup | int:
        """All ranks call it in the same order."""
        self._made[self._crew.rank] += 1
        name = str(self._made[self._crew.rank])
        among = range(self._crew.count) if ranks is None else sorted(ranks)
        found = self._groups.setdefault(name, RankGroup(self._crew, name, among))
        if found.ranks != tuple(among):
            raise UsageError(f"torch.distributed.new_group({list(among)}): another rank makes a group of {list(found.ranks)} here")
        return found if self._crew.rank in found.ranks else _NO_MEMBER

    def _met(
        self, what: str, group: Any, given: Any = None, *, async_op: bool = False, root: int | None = None, sends: bool = True
    ) -> tuple[list[Any], BegunWork | None]:
        """A collective. `root`: the only one that sends, or else receives. Gives the value of each rank, and the work if that is wanted."""
        found, me = self._of(group), self._crew.rank
        of_root = {} if root is None else {"sends": (me == root) is sends, "receives": (me == root) is not sends}
        values, wait = meets(self._crew, what, given, found.ranks, later=async_op, **of_root)
        if async_op:
            return values, self._begun_work(wait)
        wait()
        return values, None

    def _begun_work(self, done: Callable[[], None]) -> BegunWork:
        work = BegunWork(done)
        work.then(self._crew.later(work.wait))
        return work

    def _root(self, group: Any, of_world: int | None, of_group: int | None) -> int:
        """The rank that a collective names by its number in the group or among all."""
        return (of_world or 0) if of_group is None else self._of(group).ranks[of_group]

    # -- collectives ---------------------------------------------------------------------------------------------------------------------

    def _barrier(self, group: Any = None, async_op: bool = False, device_ids: Any = None) -> Any:
        return self._met("barrier", group, async_op=async_op)[1]

    def _all_reduce(self, tensor: Any, op: Any = "SUM", group: Any = None, async_op: bool = False) -> Any:
        found, work = self._met(_named("all_reduce", op), group, tensor.clone(), async_op=async_op)
        tensor.copy_(_total(op, found))
        return work

    def _reduce(
        self, tensor: Any, dst: int | None = None, op: Any = "SUM", group: Any = None, async_op: bool = False, group_dst: int | None = None
    ) -> Any:
        root = self._root(group, dst, group_dst)
        found, work = self._met(f"{_named('reduce', op)} to rank {root}", group, tensor.clone(), async_op=async_op, root=root, sends=False)
        if self._crew.rank == root:
            tensor.copy_(_total(op, found))
        return work

    def _reduce_scatter(self, output: Any, input: Any, op: Any = "SUM", group: Any = None, async_op: bool = False) -> Any:  # noqa: A002
        found, work = self._met(_named("reduce_scatter_tensor", op), group, input.clone(), async_op=async_op)
        parts = _total(op, found).reshape(len(found), -1)
        output.copy_(parts[self._of(group).rank()].reshape(output.shape))
        return work

    def _all_gather(self, tensors: Any, tensor: Any, group: Any = None, async_op: bool = False) -> Any:
        found, work = self._met("all_gather", group, tensor.clone(), async_op=async_op)
        for to, given in zip(tensors, found, strict=True):
            if to.data_ptr() != tensor.data_ptr():  # a part that is in place is only read
                to.copy_(given)
        return work

    def _all_gather_into(self, output: Any, tensor: Any, group: Any = None, async_op: bool = False) -> Any:
        found, work = self._met("all_gather_into_tensor", group, tensor.clone(), async_op=async_op)
        parts = output.reshape(len(found), -1)
        for rank, given in enumerate(found):
            if parts[rank].data_ptr() != tensor.data_ptr():  # a part that is in place is only read
                parts[rank] = given.reshape(-1)
        return work

    def _all_gather_object(self, found: list[Any], given: Any, group: Any = None) -> None:
        found[:] = self._met("all_gather_object", group, given)[0]

    def _all_to_all(
        self,
        output: Any,
        input: Any,  # noqa: A002 - torch's name
        output_split_sizes: Any = None,
        input_split_sizes: Any = None,
        group: Any = None,
        async_op: bool = False,
    ) -> Any:
        if output_split_sizes or input_split_sizes:
            raise NotSupported("torch.distributed.all_to_all_single: with --ranks all parts have the same size")
        found, work = self._met("all_to_all_single", group, input.clone(), async_op=async_op)
        parts, me = output.reshape(len(found), -1), self._of(group).rank()
        for rank, given in enumerate(found):
            parts[rank] = given.reshape(len(found), -1)[me]
        return work

    def _broadcast(
        self, tensor: Any, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
    ) -> Any:  # fmt: skip
        root = self._root(group, src, group_src)
        found, work = self._met(f"broadcast from rank {root}", group, tensor.clone(), async_op=async_op, root=root)
        if self._crew.rank != root:  # which only reads
            tensor.copy_(found[self._of(group).ranks.index(root)])
        return work

    def _broadcast_objects(
        self, objects: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
    ) -> None:
        root = self._root(group, src, group_src)
        found, _ = self._met(f"broadcast_object_list from rank {root}", group, list(objects), root=root)
        objects[:] = found[self._of(group).ranks.index(root)]

    # -- messages ------------------------------------------------------------------------------------------------------------------------

    def _isend(
        self, tensor: Any, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None, *, begins: bool = True
    ) -> BegunWork:  # fmt: skip
        message = (self._crew.rank, self._root(group, dst, group_dst), tag, self._of(group).group_name)
        self._sent[message] += 1
        order = self._crew.order
        with self._operations.part_of("torch.distributed.send"):
            given = tensor.clone()
        self._messages[message, self._sent[message]] = given, None if order is None else order.sent(self._crew.rank)
        begun = self._operations.begins("torch.distributed.isend", [tensor], []) if begins else []
        return self._begun_work(lambda: self._operations.over(begun))

    def _irecv(
        self, tensor: Any, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None, *, begins: bool = True
    ) -> BegunWork:  # fmt: skip
        if src is None and group_src is None:
            raise NotSupported("torch.distributed.recv: with --ranks it needs the rank that sends")
        me = self._crew.rank
        message = (self._root(group, src, group_src), me, tag, self._of(group).group_name)
        self._taken[message] += 1
        key = message, self._taken[message]

        begun = self._operations.begins("torch.distributed.irecv", [], [tensor]) if begins else []

        def take() -> None:
            self._operations.over(begun)
            self._crew.until(lambda: key in self._messages, f"a message of rank {message[0]}")
            given, sent = self._messages.pop(key)
            if sent is not None and self._crew.order is not None:
                self._crew.order.received(me, sent)
            with self._operations.part_of("torch.distributed.recv"):
                tensor.copy_(given.reshape(tensor.shape))

        return self._begun_work(take)

    def _recv(self, tensor: Any, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
        self._irecv(tensor, src, group, tag, group_src, begins=False).wait()
        return self._root(group, src, group_src)

    def _batch(self, ops: Sequence[PointToPoint]) -> list[BegunWork]:
        return [each.op(each.tensor, self._root(each.group, each.peer, each.group_peer), each.group, each.tag) for each in ops]


def _tensors(values: Iterable[Any]) -> Iterator[Any]:
    """The tensors among arguments, and in lists of them."""
    for each in values:
        if isinstance(each, (list, tuple)):
            yield from _tensors(each)
        elif hasattr(each, "data_ptr"):
            yield each


def _name(op: Any) -> str:
    return str(op).rpartition(".")[2]


def _named(what: str, op: Any) -> str:
    """A reduction, by its name for all ranks."""
    if _name(op) not in REDUCTIONS:
        raise NotSupported(f"torch.distributed.{what}: {op} is not supported with --ranks")
    return f"{what} ({_name(op)})"


def _total(op: Any, found: list[Any]) -> Any:
    total = functools.reduce(REDUCTIONS[_name(op)], found)
    return total / len(found) if _name(op) == "AVG" else total
