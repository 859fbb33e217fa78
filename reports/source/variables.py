"""Names for bytes of shared memory: `tile[1][3]`, `full[0]`, `pairs[1].weight`, `bytes 128..131 of dynamic shared memory`.

A layout from a backend tells which variable the bytes belong to; the declaration in the source or in PTX tells which
element. Nothing is guessed: a byte range that is not within one variable has no name. If the element size is unknown, the
name gives the bytes within the variable.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from consan.dataclass import dataclass
from consan.reports.counts import plural
from consan.reports.source.declarations import DeclaredVariable, Member, SourceTexts
from consan.reports.source.names import DIRECTLY, variable_name

if TYPE_CHECKING:
    from consan.instrument.sites import SharedVariable

DYNAMIC = "dynamic shared memory"
_SAID = "// consan: shared memory of"  # before a name that a framework has given
MOST_PARTS = 8  # of an array that may be meant as buffers used in turn


@dataclass(frozen=True)
class Placed:
    """A variable and its place in the CTA's shared memory. `element` 0: the size of its elements is unknown."""

    name: str
    offset: int
    bytes: int
    element: int = 0
    dims: tuple[int, ...] = ()
    members: tuple[Member, ...] = ()
    stages: bool = False  # each element of the first dimension is a stage


@dataclass(frozen=True)
class SharedName:
    """A part of dynamic shared memory to which a framework gives a name. `element` 0: the places of its elements are unknown."""

    name: str
    offset: int
    bytes: int
    element: int = 0

    def text(self, kernel: str) -> str:
        """A line of PTX that says so."""
        return f"{_SAID} {kernel} {self.offset} {self.bytes} {self.element} {self.name}"

    def at(self, dynamic: int) -> Placed:
        """The same where dynamic shared memory begins at `dynamic`."""
        dims = (self.bytes // self.element,) if self.element and self.element != self.bytes else ()
        return Placed(self.name, dynamic + self.offset, self.bytes, self.element, dims)


def names_said(ptx: str, kernel: str) -> list[SharedName]:
    """The names that lines of PTX give a kernel's shared memory."""
    begin = f"{_SAID} {kernel} "
    found = [line[len(begin) :].split(maxsplit=3) for line in ptx[max(ptx.find(_SAID), 0) :].splitlines() if line.startswith(begin)]
    return [SharedName(name, int(offset), int(size), int(element)) for offset, size, element, name in found]


@dataclass(frozen=True)
class Layout:
    """The variables of one kernel. Memory from `dynamic` on has its size from the launch.

    `starts`: pointers that the kernel sets into that memory: bytes from its begin, and names.
    """

    variables: tuple[Placed, ...] = ()
    dynamic: int | None = None
    starts: tuple[tuple[int, str], ...] = ()

    def name(self, begin: int, end: int) -> str:
        """The name of the bytes [begin, end); "" if unknown."""
        variable = self._of(begin, end)
        if variable is not None:
            return element_name(variable, begin - variable.offset, end - variable.offset)
        if self.dynamic is not None and begin >= self.dynamic:
            first, last = begin - self.dynamic, end - self.dynamic
            return f"{_bytes(first, last)} of {DYNAMIC}{self._from_start(first, last)}"
        return ""

    def _from_start(self, begin: int, end: int) -> str:
        """` (tile + 0..15)`: bytes of dynamic memory behind the nearest pointer. Its variable is not known: pointers have no sizes."""
        at = max((start for start, _ in self.starts if start <= begin), default=-1)
        names = " or ".join(name for start, name in self.starts if start == at)
        return f" ({names} + {begin - at}..{end - 1 - at})" if names else ""

    def region(self, begin: int, end: int) -> str:
        """The name of bytes that several accesses touched: the variable, or the element if all are inside one."""
        variable = self._of(begin, end)
        if variable is None:
            return DYNAMIC if self.dynamic is not None and begin >= self.dynamic else ""
        return self.name(begin, end) if 0 < end - begin <= variable.element else variable.name

    def part(self, begin: int, end: int) -> tuple[str, Placed] | None:
        """The one part of a small array of tiles that the bytes lie in, such as `tile[0]` of `tile[2][64]`, and the array."""
        variable = self._of(begin, end)
        if variable is None or len(variable.dims) < 2 or not 1 < variable.dims[0] <= MOST_PARTS:
            return None
        size = variable.bytes // variable.dims[0]
        first, last = (begin - variable.offset) // size, (end - 1 - variable.offset) // size
        return (f"{variable.name}[{first}]", variable) if first == last else None

    def _of(self, begin: int, end: int) -> Placed | None:
        return next((each for each in self.variables if each.offset <= begin < end <= each.offset + each.bytes), None)


def element_name(variable: Placed, begin: int, end: int) -> str:
    """The name of bytes within a variable: `tile[1][3]`, `tile[1][0..3]`."""
    if end - begin == variable.bytes and not variable.dims:
        return variable.name
    if not variable.element:
        return f"{_bytes(begin, end)} of {variable.name}"
    first, last = begin // variable.element, (end - 1) // variable.element
    if first == last:
        start = first * variable.element
        return _within(variable, variable.name + _index(variable.dims, first), begin - start, end - start)
    size = variable.bytes // variable.dims[0]
    if variable.stages and len(variable.dims) > 1 and end - begin == size and begin % size == 0:
        return f"{variable.name}[{begin // size}]"
    if last - first + 1 <= variable.dims[-1] and first // variable.dims[-1] == last // variable.dims[-1]:
        return f"{variable.name}{_index(variable.dims, first)[:-1]}..{last % variable.dims[-1]}]"
    return f"{variable.name}{_index(variable.dims, first)} to {variable.name}{_index(variable.dims, last)}"


def _index(dims: tuple[int, ...], flat: int) -> str:
    indices = []
    for dim in reversed(dims):
        indices.append(flat % dim)
        flat //= dim
    return "".join(f"[{index}]" for index in reversed(indices))


def _within(variable: Placed, name: str, begin: int, end: int) -> str:
    """An element or a part of it: `pairs[1].weight` of a struct, else its bytes."""
    if end - begin == variable.element:
        return name
    for member in variable.members:
        size, inside = member.element * math.prod(member.declared.dims), begin - member.offset
        if inside >= 0 and end - member.offset <= size:
            placed = Placed(f"{name}.{member.declared.name}", 0, size, member.element, member.declared.dims, (), member.declared.stages)
            return element_name(placed, inside, end - member.offset)
    return f"{_bytes(begin, end)} of {name}"


def _bytes(begin: int, end: int) -> str:
    return f"byte {begin}" if end - begin == 1 else f"bytes {begin}..{end - 1}"


# --- global memory ---------------------------------------------------------------------------------------------------------------

_NEAR = 1 << 20  # bytes; an address this close to a buffer is described relative to it


@dataclass(frozen=True)
class Argument:
    """A buffer argument of a launch. `label` is `--arg 2` or `argument 2`; `name` is the parameter's name in the source, if known.

    `element`: the bytes of an element; 1 where they are not known.
    """

    label: str
    begin: int
    bytes: int
    name: str = ""
    element: int = 1

    def part(self, begin: int, end: int) -> str:
        """`element 4` or `elements 4..7` for whole elements between two addresses, else `bytes 18..19`."""
        low, high = begin - self.begin, end - self.begin
        if self.element == 1 or low % self.element or high % self.element:
            return _bytes(low, high)
        first, last = low // self.element, high // self.element - 1
        return f"element {first}" if first == last else f"elements {first}..{last}"

    def place(self, begin: int, end: int, said: str | None = None) -> str:
        """`element 4 of argument 2 (in)`. `said`: more than the name in the parentheses."""
        more = self.name if said is None else said
        return f"{self.part(begin, end)} of {self.label}" + (f" ({more})" if more else "")

    @property
    def number(self) -> int:
        """The number of the argument."""
        return int(self.label.rsplit(" ", 1)[1])


def address_name(arguments: Iterable[Argument], begin: int, end: int) -> str:
    """`element 4 of --arg 1 (out)`, `directly past the end of --arg 2 (in, 4,096 bytes)`; "" far from all buffers."""
    near = min(arguments, key=lambda each: _distance(each, begin, end), default=None)
    if near is None or _distance(near, begin, end) > _NEAR:
        return ""
    known = ", ".join(filter(None, (near.name, plural(near.bytes, "byte"))))
    if begin < near.begin:
        return f"{plural(near.begin - begin, 'byte')} before {near.label} ({known})"
    if begin >= near.begin + near.bytes:
        distance = begin - near.begin - near.bytes
        return f"{plural(distance, 'byte') if distance else DIRECTLY} past the end of {near.label} ({known})"
    return near.place(begin, end, known if end > near.begin + near.bytes else None)


def _distance(argument: Argument, begin: int, end: int) -> int:
    return max(0, argument.begin - begin, end - argument.begin - argument.bytes)


# --- from declarations -----------------------------------------------------------------------------------------------------------


def placed(variable: SharedVariable, offset: int, source: SourceTexts) -> Placed:
    """A variable with the elements of its source declaration, else those of PTX."""
    plain = Placed(variable_name(variable.symbol), offset, variable.bytes)
    fitting = {_shaped(plain, declared, source) for declared in source.shared(plain.name.rsplit("::", 1)[-1])} - {None}
    if len(fitting) == 1:
        return fitting.pop() or plain
    element = variable.element if variable.element > 1 else 0
    dims = (variable.bytes // element,) if element and element != variable.bytes else ()
    return replace(plain, element=element, dims=dims)


def _shaped(plain: Placed, declared: DeclaredVariable, source: SourceTexts) -> Placed | None:
    """None if the declaration has another size or is not understood."""
    known, (first, *rest) = source.size(declared.type), declared.dims or (1,)
    inner = math.prod(rest)
    if not inner or not (first or known):
        return None
    element = known or plain.bytes // (first * inner)
    first = first or plain.bytes // (known * inner)
    if element * first * inner != plain.bytes or not element:
        return None
    members = source.members(declared.type)
    size = max((each.offset + each.element * math.prod(each.declared.dims) for each in members), default=0)
    dims = (first, *rest) if declared.dims else ()
    return replace(plain, element=element, dims=dims, members=members if size <= element else (), stages=declared.stages)


def layout(
    variables: Iterable[SharedVariable], offsets: Mapping[str, int], dynamic: int | None, source: SourceTexts, kernel: str = ""
) -> Layout:
    """The layout of a kernel. Variables without an offset are left out."""
    known = [variable for variable in variables if variable.bytes and variable.symbol in offsets]
    return Layout(tuple(placed(each, offsets[each.symbol], source) for each in known), dynamic, source.starts(kernel))
