"""The accesses of the host's operations on symmetric memory, for a comparison with the launches of other ranks (SEMANTICS 12, R-RK5).

On GPUs an operation on a tensor is a kernel or a copy in the stream of its rank, and so it is here: it comes behind what its rank has done
before. What a collective writes is over for its rank once that has waited for it.

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
from consan.ranks.memory import address_of
from consan.reports.source.variables import Argument
from consan.session.comparing.array_rows import Placed
from consan.session.comparing.program_streams import caller
from consan.session.comparing.rank_launches import Signalled
from consan.session.modules.layouts import NamedBuffers


@dataclass(frozen=True)
class _Extents:
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int


class _Part:
    """An operation that others of a rank are a part of. `seen`: they are compared. `pending`: what they write is not over behind them."""

    def __init__(self, name: str, *, seen: bool = True, pending: bool = False) -> None:
        self.name, self.seen, self.pending = name, seen, pending
        self.begun: list[Any] = []  # what is not over


class HostOperations:
    """The operations of all ranks of a crew."""

    def __init__(self, crew: Crew, session: Any) -> None:
        self._crew, self._session = crew, session
        self._parts: dict[int, list[_Part]] = {}  # by rank

    @contextmanager
    def part_of(self, name: str, *, seen: bool = True, pending: bool = False) -> Iterator[Signalled]:
        """Operations of the rank inside are a part of this one. Gives what is not over behind it."""
        parts, made = self._parts.setdefault(self._crew.rank, []), _Part(name, seen=seen, pending=pending)
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
        if self._crew.order is not None:
            self._crew.order.received(self._crew.rank, begun)

    def done(self, name: str, reads: Sequence[Any], writes: Sequence[Any], *, certain: bool = True, to_host: bool = False) -> None:
        """The rank has made an operation on tensors. `certain`: it touches all of their bytes. `to_host`: the host has waited for it."""
        rank = self._crew.rank
        part = next(iter(self._parts.get(rank, [])[-1:]), None)
        reads_of, writes_of = ([_placed(each) for each in some if self.shares(each)] for some in (reads, writes))
        order = order_of(self._crew, self._session)
        if order is None or (part is not None and not part.seen):
            return
        if reads_of or writes_of:
            what, pending = part.name if part is not None else f"torch's {name}", part is not None and part.pending and bool(writes_of)
            made = order.operated(rank, what, reads_of, writes_of, caller(), names=self._name, over=not pending, certain=certain)
            if part is not None and pending:
                part.begun += made
        if to_host:
            order.host_waited(rank)

    def _name(self, begin: int, end: int) -> str:
        named = [Argument(label, address_of(array), array.nbytes, "", element) for label, array, element in self._crew.memory.named()]
        return NamedBuffers(tuple(named))(begin, end)

    def shares(self, tensor: Any) -> bool:
        """Whether a tensor is of symmetric memory, or of signals."""
        address = int(tensor.data_ptr())
        return any(begin <= address < begin + array.nbytes for begin, array in self._crew.memory.placed())


def _placed(tensor: Any) -> Placed:
    size = int(tensor.element_size())
    return int(tensor.data_ptr()), _Extents(tuple(tensor.shape), tuple(step * size for step in tensor.stride()), size)
