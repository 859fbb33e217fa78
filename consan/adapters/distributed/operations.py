"""The accesses of the host's operations on symmetric memory, for a comparison with the launches of other ranks (SEMANTICS 12, R-RK5).

On GPUs an operation on a tensor is a kernel or a copy in the stream of its rank, and so it is here: it comes behind what its rank has done
before. The writes of a collective are over for its rank once that has waited for it.

Not handled: what a program does to the memory of a tensor by NumPy, by an address, or in a thread that it starts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from consan.adapters.distributed.order import order_of
from consan.dataclass import dataclass
from consan.ranks.crew import Crew
from consan.ranks.memory import address_of, bytes_of
from consan.reports.source.variables import Argument
from consan.session.comparing.array_rows import Placed
from consan.session.comparing.program_streams import caller
from consan.session.comparing.rank_launches import RankLaunches, Signalled
from consan.session.modules.layouts import NamedBuffers


@dataclass(frozen=True)
class _Extents:
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int


class _Part:
    """An operation that others of a rank are a part of. `seen`: they are compared. `pending`: what they write is not over behind them.

    `begins`: tensors of the program that it uses when the rank goes on.
    """

    def __init__(self, name: str, *, seen: bool = True, pending: bool = False, begins: Sequence[Any] = ()) -> None:
        self.name, self.seen, self.pending, self.begins = name, seen, pending, begins
        self.begun: list[Any] = []  # what is not over


class HostOperations:
    """The operations of all ranks of a crew."""

    def __init__(self, crew: Crew, session: Any) -> None:
        self._crew, self._session = crew, session
        self._parts: dict[int, list[_Part]] = {}  # by rank
        self._begun: list[tuple[int, Any, Any]] = []  # what is not over: the rank, the tensor, and the operation

    @contextmanager
    def part_of(self, name: str, *, seen: bool = True, pending: bool = False, begins: Sequence[Any] = ()) -> Iterator[Signalled]:
        """Operations of the rank inside are a part of this one. Gives what is not over behind it."""
        parts, made = self._parts.setdefault(self._crew.rank, []), _Part(name, seen=seen, pending=pending, begins=begins)
        parts.append(made)
        try:
            yield made.begun
        finally:
            parts.remove(made)

    def parts_of(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """A function whose operations are parts of it."""

        @functools.wraps(call)
        def made(*args: Any, **how: Any) -> Any:
            with self.part_of(name):
                return call(*args, **how)

        return made

    def over(self, begun: Signalled) -> None:
        """The rank has waited for it."""
        done = [made for made, _ in begun]
        self._begun = [each for each in self._begun if each[2] not in done]
        if self._crew.order is not None:
            self._crew.order.received(self._crew.rank, begun)

    def done(self, name: str, reads: Sequence[Any], writes: Sequence[Any], *, certain: bool = True, to_host: bool = False) -> None:
        """The rank has made an operation on tensors. `certain`: it touches all of their bytes. `to_host`: the host has waited for it."""
        rank = self._crew.rank
        part = next(iter(self._parts.get(rank, [])[-1:]), None)
        reads_of, writes_of = ([_placed(each) for each in some if self._is_shared(each)] for some in (reads, writes))
        if part is not None and part.begins:
            part.begun += self.begins(part.name, *([each for each in some if _meets(each, part.begins)] for some in (reads, writes)))
        order = order_of(self._crew, self._session)
        if order is None or (part is not None and not part.seen):
            return
        if part is None or not part.begins:
            self._before_over(order, _called(name, part), reads, writes, certain=certain)
        if reads_of or writes_of:
            self._crew.uses_stream()
            what, pending = _called(name, part), part is not None and part.pending and bool(writes_of)
            made = order.operated(rank, what, reads_of, writes_of, caller(), names=self._name, over=not pending, certain=certain)
            if part is not None and pending:
                part.begun += made
        if to_host:
            order.host_waited(rank)

    def _name(self, begin: int, end: int) -> str:
        inside = [
            Argument(label, address_of(array), array.nbytes, "", element)
            for label, array, element in self._crew.memory.named()
            if address_of(array) <= begin < address_of(array) + array.nbytes
        ]
        return NamedBuffers(tuple(inside))(begin, end) if inside else ""

    def begins(self, what: str, reads: Sequence[Any], writes: Sequence[Any]) -> Signalled:
        """The rank that runs begins an operation on tensors. Gives what is not over until `over`."""
        order, rank = order_of(self._crew, self._session, needed=True), self._crew.rank
        if order is None or not (reads or writes):
            return []
        read, written = ([_placed(each) for each in some] for some in (reads, writes))
        made = order.operated(rank, what, read, written, caller(), names=self._name, over=False, own=True)
        self._begun += [(rank, each, made[0][0]) for each in (*reads, *writes)]
        return made

    def _before_over(self, order: RankLaunches, what: str, reads: Sequence[Any], writes: Sequence[Any], *, certain: bool) -> None:
        """Compare an operation with those that the rank has begun, and which are not over."""
        found = [[each for each in some if self._is_begun(each)] for some in (reads, writes)]
        if any(found):
            read, written = ([_placed(each) for each in some] for some in found)
            order.operated(self._crew.rank, what, read, written, caller(), names=self._name, certain=certain, own=True)

    def begun(self) -> list[Any]:
        """The bytes that operations of a rank use which are not over for it."""
        return [bytes_of(*_span(tensor)) for _, tensor, _ in self._begun]

    def _is_begun(self, tensor: Any) -> bool:
        return _meets(tensor, [other for rank, other, _ in self._begun if rank == self._crew.rank])

    def shares(self, tensor: Any) -> bool:
        """Whether the operations on a tensor are compared: it is of symmetric memory or of signals, or another operation is not over."""
        return self._is_shared(tensor) or self._is_begun(tensor)

    def _is_shared(self, tensor: Any) -> bool:
        address = int(tensor.data_ptr())
        return any(begin <= address < begin + array.nbytes for begin, array in self._crew.memory.placed())


def _called(name: str, part: _Part | None) -> str:
    return part.name if part is not None else f"torch's {name}"


def _span(tensor: Any) -> tuple[int, int]:
    """From its first byte to its last; strides of tensors are not negative."""
    begin, size = int(tensor.data_ptr()), int(tensor.element_size())
    reach = sum((extent - 1) * step for extent, step in zip(tensor.shape, tensor.stride(), strict=True)) + 1
    return begin, begin + (reach * size if 0 not in tensor.shape else 0)


def _meets(tensor: Any, others: Sequence[Any]) -> bool:
    begin, end = _span(tensor)
    return any(begin < behind and first < end for first, behind in map(_span, others))


def _placed(tensor: Any) -> Placed:
    size = int(tensor.element_size())
    return int(tensor.data_ptr()), _Extents(tuple(tensor.shape), tuple(step * size for step in tensor.stride()), size)
