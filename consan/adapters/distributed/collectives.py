"""The functions of `torch.distributed` between the ranks of one process.

A collective waits for its ranks and has its result where it is made, also with `async_op`. It runs in a stream of its group, as on GPUs:
behind what the current stream was given before, and behind what those of the others were. The current stream comes behind it at once, or
with `async_op` from `work.wait()` on. Some have one sender or one receiver. A `send` waits for nobody.

Not handled: messages from any rank.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

from consan._errors import NotSupported, UsageError
from consan.adapters.distributed.operations import HostOperations
from consan.adapters.distributed.order import hosts_meet, meets
from consan.ranks.crew import Crew
from consan.session.comparing.program_streams import ProgramStream

REDUCTIONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "SUM": operator.add,
    "AVG": operator.add,
    "PRODUCT": operator.mul,
    "MAX": lambda one, other: one * (one >= other) + other * (one < other),
    "MIN": lambda one, other: one * (one <= other) + other * (one > other),
}


_HOST_WAITS: Final = ("barrier", "all_gather_object", "broadcast_object_list")  # the host waits for its current stream
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
        self._operations, self._streams = operations, operations.streams
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
            group, later = given.get("group"), given.get("async_op", False)
            if isinstance(group, int) and group == _NO_MEMBER:
                return None
            found = self._of(group)
            with self._operations.part_of(f"torch.distributed.{name}", stream=self._stream_of(found.group_name, later=later)) as stream:
                collective(**{**given, "group": found})
            work = self._begun_work(stream)
            if later:
                return work
            work.wait()
            if name in _HOST_WAITS:
                self._streams.host_waits(self._streams.current())
            return None

        return made

    def _stream_of(self, group: str, *, later: bool) -> ProgramStream:
        """The stream of a group. As long as a rank has one stream, and waits for each operation at once, that may do."""
        streams = self._streams
        alone = not later and len(streams.on(self._crew.rank)) == 1
        return streams.current() if alone else self._operations.of_library(f"torch.distributed, group {group}", ": work.wait()")

    def _begun_work(self, stream: ProgramStream) -> BegunWork:
        """The work of what a stream was given."""
        over = stream.record()
        return BegunWork(lambda: self._streams.current().wait(over))

    def _of(self, group: Any) -> RankGroup:
        """The group that an argument names. The rank that runs is in it."""
        found = self.world if group is None else self._groups.get(group) if isinstance(group, str) else group
        if not isinstance(found, RankGroup):
            raise NotSupported(f"torch.distributed: {group!r} is no group that was made with --ranks")
        return found

    def _init(self, *args: Any, **how: Any) -> None:
        self._begun.add(self._crew.rank)
        hosts_meet(self._crew, "init_process_group")

    def _group(self, ranks: Sequence[int] | None = None, *args: Any, **how: Any) -> RankGroup | int:
        """All ranks call it in the same order."""
        self._made[self._crew.rank] += 1
        name = str(self._made[self._crew.rank])
        among = range(self._crew.count) if ranks is None else sorted(ranks)
        found = self._groups.setdefault(name, RankGroup(self._crew, name, among))
        if found.ranks != tuple(among):
            raise UsageError(f"torch.distributed.new_group({list(among)}): another rank makes a group of {list(found.ranks)} here")
        return found if self._crew.rank in found.ranks else _NO_MEMBER

    def _met(self, what: str, group: RankGroup, given: Any = None, *, root: int | None = None, sends: bool = True) -> list[Any]:
        """A collective. `root`: the only one that sends, or else receives. Gives the value of each rank."""
        me = self._crew.rank
        of_root = {} if root is None else {"sends": (me == root) is sends, "receives": (me == root) is not sends}
        return meets(self._crew, self._operations.stream, what, given, group.ranks, **of_root)

    def _root(self, group: Any, of_world: int | None, of_group: int | None) -> int:
        """The rank that a collective names by its number in the group or among all."""
        return (of_world or 0) if of_group is None else self._of(group).ranks[of_group]

    # -- collectives: what they do in their stream -------------------------------------------------------------------------------------

    def _barrier(self, group: Any = None, async_op: bool = False, device_ids: Any = None) -> None:
        self._met("barrier", group)

    def _all_reduce(self, tensor: Any, op: Any = "SUM", group: Any = None, async_op: bool = False) -> None:
        tensor.copy_(_total(op, self._met(_named("all_reduce", op), group, tensor.clone())))

    def _reduce(
        self, tensor: Any, dst: int | None = None, op: Any = "SUM", group: Any = None, async_op: bool = False, group_dst: int | None = None
    ) -> None:
        root = self._root(group, dst, group_dst)
        found = self._met(f"{_named('reduce', op)} to rank {root}", group, tensor.clone(), root=root, sends=False)
        if self._crew.rank == root:
            tensor.copy_(_total(op, found))

    def _reduce_scatter(self, output: Any, input: Any, op: Any = "SUM", group: Any = None, async_op: bool = False) -> None:  # noqa: A002
        found = self._met(_named("reduce_scatter_tensor", op), group, input.clone())
        parts = _total(op, found).reshape(len(found), -1)
        output.copy_(parts[group.rank()].reshape(output.shape))

    def _all_gather(self, tensor_list: Any, tensor: Any, group: Any = None, async_op: bool = False) -> None:
        for to, given in zip(tensor_list, self._met("all_gather", group, tensor.clone()), strict=True):
            if to.data_ptr() != tensor.data_ptr():  # a part that is in place is only read
                to.copy_(given)

    def _all_gather_into(self, output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False) -> None:
        found = self._met("all_gather_into_tensor", group, input_tensor.clone())
        parts = output_tensor.reshape(len(found), -1)
        for rank, given in enumerate(found):
            if parts[rank].data_ptr() != input_tensor.data_ptr():  # a part that is in place is only read
                parts[rank] = given.reshape(-1)

    def _all_gather_object(self, object_list: list[Any], obj: Any, group: Any = None) -> None:
        object_list[:] = self._met("all_gather_object", group, obj)

    def _all_to_all(
        self,
        output: Any,
        input: Any,  # noqa: A002 - torch's name
        output_split_sizes: Any = None,
        input_split_sizes: Any = None,
        group: Any = None,
        async_op: bool = False,
    ) -> None:
        if output_split_sizes or input_split_sizes:
            raise NotSupported("torch.distributed.all_to_all_single: with --ranks all parts have the same size")
        found = self._met("all_to_all_single", group, input.clone())
        parts, me = output.reshape(len(found), -1), group.rank()
        for rank, given in enumerate(found):
            parts[rank] = given.reshape(len(found), -1)[me]

    def _broadcast(
        self, tensor: Any, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
    ) -> None:  # fmt: skip
        root = self._root(group, src, group_src)
        found = self._met(f"broadcast from rank {root}", group, tensor.clone(), root=root)
        if self._crew.rank != root:  # which only reads
            tensor.copy_(found[group.ranks.index(root)])

    def _broadcast_objects(
        self, object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
    ) -> None:  # fmt: skip
        root = self._root(group, src, group_src)
        found = self._met(f"broadcast_object_list from rank {root}", group, list(object_list), root=root)
        object_list[:] = found[group.ranks.index(root)]

    # -- messages ------------------------------------------------------------------------------------------------------------------------

    def _isend(
        self, tensor: Any, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None, *, begins: bool = True,
        batch: bool = False,
    ) -> BegunWork:  # fmt: skip
        found, me = self._of(group), self._crew.rank
        message = (me, self._root(group, dst, group_dst), tag, found.group_name)
        self._sent[message] += 1
        with self._operations.part_of("torch.distributed.isend" if begins else "torch.distributed.send",
                                      stream=self._stream_to(message[1], found, later=begins, batch=batch)) as stream:  # fmt: skip
            given = tensor.clone()
        self._messages[message, self._sent[message]] = given, stream.record()
        return self._begun_work(stream)

    def _stream_to(self, peer: int, group: RankGroup, *, later: bool, batch: bool) -> ProgramStream:
        """The stream of the messages between two ranks; those of a batch are in that of their group."""
        if batch or (not later and len(self._streams.on(self._crew.rank)) == 1):
            return self._stream_of(group.group_name, later=later)
        return self._operations.of_library(f"torch.distributed, messages with rank {peer}, group {group.group_name}", ": work.wait()")

    def _irecv(
        self, tensor: Any, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None, *, begins: bool = True,
        batch: bool = False,
    ) -> BegunWork:  # fmt: skip
        if src is None and group_src is None:
            raise NotSupported("torch.distributed.recv: with --ranks it needs the rank that sends")
        found, me = self._of(group), self._crew.rank
        message = (self._root(group, src, group_src), me, tag, found.group_name)
        self._taken[message] += 1
        key, stream = (message, self._taken[message]), self._stream_to(message[0], found, later=begins, batch=batch)
        if begins:
            with self._operations.part_of("torch.distributed.irecv", stream=stream, of_one=True):
                self._operations.done("irecv", [], [tensor])

        def take() -> None:
            self._crew.until(lambda: key in self._messages, f"a message of rank {message[0]}")
            given, sent = self._messages.pop(key)
            stream.wait(sent)
            of_one = False if begins else None
            with self._operations.part_of("torch.distributed.recv", stream=stream, behind=not begins, of_one=of_one):
                tensor.copy_(given.reshape(tensor.shape))
            self._streams.current().wait(stream.record())

        work = BegunWork(take)
        work.then(self._crew.later(work.wait))
        return work

    def _recv(self, tensor: Any, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
        self._irecv(tensor, src, group, tag, group_src, begins=False).wait()
        return self._root(group, src, group_src)

    def _batch(self, ops: Sequence[PointToPoint]) -> list[BegunWork]:
        return [each.op(each.tensor, self._root(each.group, each.peer, each.group_peer), each.group, each.tag, batch=True) for each in ops]


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
