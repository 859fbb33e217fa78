"""The parts of a kernel's slice: words of its parameters, accesses, and the instructions that they follow from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from consan.dataclass import dataclass
from consan.instrument.control_flow import Guard, Key
from consan.ranges.operations import SpreadOperation
from consan.ranges.values import SpreadValue


class NotProven(Exception):  # noqa: N818
    """There is no proof: why. `never`: nor for any other launch of the kernel."""

    def __init__(self, why: str, *, never: bool = False) -> None:
        super().__init__(why)
        self.never = never


@dataclass(frozen=True, order=True, slots=True)
class ParameterWord:
    """A word of the parameters: the number of the parameter, and its bytes."""

    parameter: int
    begin: int
    end: int

    def overlaps(self, other: ParameterWord) -> bool:
        """Whether they share bytes."""
        return self.parameter == other.parameter and self.begin < other.end and other.begin < self.end

    def of(self, parameters: Sequence[bytes]) -> bytes:
        """Its bytes."""
        return parameters[self.parameter][self.begin : self.end]


@dataclass(frozen=True, slots=True)
class Opposite:
    """A predicate that is negated."""

    register: Key


Source = Key | SpreadValue | str | Opposite | None
"""Where a value is: a register, a number, the name of a special register, a negated predicate; None: it is not known."""


@dataclass(frozen=True, slots=True)
class BoxForm:
    """The box of a tensor copy: the words of the parameters with the address and the rest of its map, and its coordinates."""

    address: ParameterWord
    rest: ParameterWord
    coordinates: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Together:
    """The accesses that may meet without a race: of one proxy, and of elements of one size. 0 bytes: the map of a copy has them."""

    proxy: str
    element: int


@dataclass(frozen=True, slots=True)
class AccessForm:
    """An access of an instruction, at a line of the PTX. `own`: a thread may meet its own writes. `strong`: other threads may, as well.

    `asynchronous`: a copy makes it, which is a thread of its own. `size`: the bytes of a bulk copy; `box`: of a tensor copy. `together`: it
    may meet others of that kind (together.py).
    """

    base: Source
    offset: int
    nbytes: int
    writes: bool
    own: bool
    line: int
    opcode: str
    strong: bool
    asynchronous: bool = False
    size: Source | None = None
    box: BoxForm | None = None
    together: Together | None = None

    @property
    def repeats(self) -> bool:
        """Whether it is another write each time: those of copies are in no order, and those of a thread are."""
        return self.writes and self.asynchronous and self.together is None

    def reads(self) -> tuple[Source, ...]:
        """The inputs that its bytes follow from."""
        return self.base, self.size, *(() if self.box is None else self.box.coordinates)


@dataclass(frozen=True, slots=True)
class ParameterForm:
    """A register that a load from the parameters writes."""

    register: Key
    place: ParameterWord
    signed: bool
    bits: int


@dataclass(frozen=True, slots=True)
class SliceStep:
    """An instruction. `amount`: not zero where a copy reads; `operation`: of `sources`, if its results can be known.

    `collective`: it takes a value from another lane ("shfl"), or elects one ("elect").
    """

    guard: Guard | None
    accesses: tuple[AccessForm, ...]
    amount: Source
    written: tuple[Key, ...]
    loads: tuple[ParameterForm, ...]
    operation: SpreadOperation | None
    sources: tuple[Source, ...]
    collective: str = ""

    @property
    def repeats(self) -> bool:
        """Whether it has an access that is another write each time."""
        return any(access.repeats for access in self.accesses)

    def reads(self) -> Iterator[Key]:
        """The registers that it reads."""
        places = [self.amount, *self.sources, *(each for access in self.accesses for each in access.reads())]
        yield from () if self.guard is None else (self.guard.register,)
        for each in places:
            if isinstance(each, tuple):
                yield each
            elif isinstance(each, Opposite):
                yield each.register

    def widths(self) -> Iterator[tuple[Key, int]]:
        """The bits of the registers that have values."""
        yield from ((load.register, load.bits) for load in self.loads)
        yield from zip(self.written, () if self.operation is None else self.operation.bits, strict=self.operation is not None)
