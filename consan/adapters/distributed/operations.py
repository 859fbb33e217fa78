"""The accesses of the host's operations on tensors, for a comparison with other launches (SEMANTICS 12, R-RK5).

On GPUs an operation on a tensor is a kernel or a copy in the current stream of its rank, and so it is here. A library has streams of its
own: what it does there is behind what the current stream was given before, and the program waits for it.

Not handled: what a program does to the memory of a tensor by NumPy, by an address, or in a thread that it starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from consan.adapters.distributed.order import order_of
from consan.dataclass import dataclass
from consan.ranks.crew import Crew
from consan.ranks.memory import address_of
from consan.reports.source.variables import Argument
from consan.session.comparing.array_rows import Placed
from consan.session.comparing.program_streams import ProgramStream, ProgramStreams, caller
from consan.session.modules.layouts import NamedBuffers


@dataclass(frozen=True)
class _Extents:
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int


class _Part:
    """An operation that others of a rank are a part of. `seen`: they are compared. `stream`: where they are made.

    `of_one`: they are compared with what the same rank does, or with what others do; None: with both.
    """

    def __init__(self, name: str, *, seen: bool = True, stream: ProgramStream | None = None, of_one: bool | None = None) -> None:
        self.name, self.seen, self.stream, self.of_one = name, seen, stream, of_one


class HostOperations:
    """The operations of all ranks of a crew."""

    def __init__(self, crew: Crew, session: Any) -> None:
        self._crew, self._session = crew, session
        self._parts: dict[int, list[_Part]] = {}  # by rank
        self._libraries: dict[tuple[int, str], ProgramStream] = {}  # by rank and name: the streams of a library

    @property
    def streams(self) -> ProgramStreams:
        """The streams of all ranks."""
        found: ProgramStreams = self._session.streams
        return found

    @property
    def stream(self) -> ProgramStream:
        """The stream of the rank that runs in which its next operation is made."""
        part = next(iter(self._parts.get(self._crew.rank, [])[-1:]), None)
        return self.streams.current() if part is None or part.stream is None else part.stream

    def of_library(self, name: str, edge: str) -> ProgramStream:
        """A stream of a library, of the rank that runs, by a name. `edge`: how the program waits for what it does there.

        Until there is a second stream this makes no difference to the only one.
        """
        rank = self._crew.rank
        if (rank, name) not in self._libraries:
            made = self._libraries[rank, name] = self.streams.make(blocking=False, edge=edge)
            made.name = f"the stream of {name}"
            made.wait(self.streams.default_of(rank))
        return self._libraries[rank, name]

    @contextmanager
    def part_of(
        self, name: str, *, seen: bool = True, stream: ProgramStream | None = None, behind: bool = True, of_one: bool | None = None
    ) -> Iterator[ProgramStream]:
        """Operations of the rank inside are a part of this one, in the stream that it gives. `behind`: what the current one was given."""
        parts, where = self._parts.setdefault(self._crew.rank, []), stream or self.stream
        if behind and stream is not None and stream is not self.stream:
            stream.wait(self.stream.record())
        made = _Part(name, seen=seen, stream=where, of_one=of_one)
        parts.append(made)
        try:
            yield where
        finally:
            parts.remove(made)

    def done(self, name: str, reads: Sequence[Any], writes: Sequence[Any], *, certain: bool = True, to_host: bool = False) -> None:
        """The rank has made an operation on tensors. `certain`: it touches all of their bytes. `to_host`: the host has waited for it."""
        part = next(iter(self._parts.get(self._crew.rank, [])[-1:]), None)
        order, stream = order_of(self._crew, self._session), self.stream
        if order is not None and (reads or writes) and (part is None or part.seen):
            called, of_one = (f"torch's {name}", None) if part is None else (part.name, part.of_one)
            shared = [_begin(each) for each in (*reads, *writes) if self.shares(each)]
            order.operated(
                stream, called, [_placed(each) for each in reads], [_placed(each) for each in writes], caller(),
                shared=shared, names=self._name, certain=certain, of_one=of_one, owners=(*reads, *writes),
            )  # fmt: skip
        if to_host:
            self.streams.host_waits(stream)

    def _name(self, begin: int, end: int) -> str:
        inside = [
            Argument(label, address_of(array), array.nbytes, "", element)
            for label, array, element in self._crew.memory.named()
            if address_of(array) <= begin < address_of(array) + array.nbytes
        ]
        return NamedBuffers(tuple(inside))(begin, end) if inside else ""

    def shares(self, tensor: Any) -> bool:
        """Whether a tensor is of symmetric memory or of signals."""
        return any(begin <= _begin(tensor) < begin + array.nbytes for begin, array in self._crew.memory.placed())


def _begin(tensor: Any) -> int:
    return int(tensor.data_ptr())


def _placed(tensor: Any) -> Placed:
    size = int(tensor.element_size())
    return _begin(tensor), _Extents(tuple(tensor.shape), tuple(step * size for step in tensor.stride()), size)
