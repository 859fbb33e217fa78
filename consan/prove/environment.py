"""The values with which a thread begins: its numbers, the sizes of the launch, the parameters, and the addresses of variables."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

from consan.instrument.control_flow import Key, definitions, key_of
from consan.instrument.isa import converts, row_of
from consan.instrument.isa.roles import names
from consan.instrument.ptx import Address, Function, Instruction, Module, Register, Symbol, Variable, Vector
from consan.instrument.ptx.extents import three_extents
from consan.prove.numbers import SMALL, Base, Number, Symbols, limits, number, plus, times

Shape = tuple[int, int, int]
_AXES: Final = "xyz"
_MOST_CTAS: Final = ((1 << 31) - 1, 65535, 65535)  # CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"
_LANES: Final = 32
DYNAMIC: Final = ""  # in place of the name of a variable whose size the launch gives
_POINTER: Final = 8  # bytes
_MOST_SHARED: Final = 227 << 10  # bytes of a CTA
_SPECIAL: Final = re.compile(r"%ctaid\.[xyz]")
SamePointers = Mapping[int, int]
"""Parameters that are pointers, each with the first one that it is equal to."""
_NONE_SAME: Final[SamePointers] = {}
_SHARED_IN_CTA: Final = frozenset(f"%{name}.{axis}" for name in ("ctaid", "nctaid", "ntid") for axis in _AXES)


def has_one_value(special: str) -> bool:
    """Whether a special register has one value in all threads of a CTA; the name may lack its component."""
    return special in _SHARED_IN_CTA or any(special == each.partition(".")[0] for each in _SHARED_IN_CTA)


class Environment:
    """The values with which threads begin, in launches whose blocks have one shape."""

    def __init__(
        self, function: Function, module: Module, block: Shape, pointers: Collection[int], symbols: Symbols, same: SamePointers = _NONE_SAME
    ) -> None:
        """`pointers`: parameters that are pointers, beside those that the text uses as such. `same`: of those that are equal.

        `flat`: the axes of the grid but x that the kernel does not read its CTA's number on, where a cluster has one. They are taken to
        have one CTA: all CTAs along them would do the same.
        """
        self.symbols, self.block = symbols, block
        self._places = {parameter.name: place for place, parameter in enumerate(function.params)}
        self._pointers, self._used, self.same = pointers, used_as_pointers(function), same
        self.shared = shared_sizes(function, module)
        symbols.shared.aligned = _alignments(function, module)
        self._global = {name.name for each in module.variables if each.space == "global" for name in each.names}
        self.parameters: dict[tuple[int, int, int], Number] = {}
        self.tid = tuple(self._own(axis, size) for axis, size in zip(_AXES, block, strict=True))
        read = {word for each in function.instructions() for word in _SPECIAL.findall(each.text)}
        cluster = _cluster(function)
        self.flat = tuple(axis for axis, extent in zip(_AXES[1:], cluster[1:], strict=True) if extent == 1 and f"%ctaid.{axis}" not in read)
        self.grid = tuple(self._size(*each) for each in zip(_AXES, _MOST_CTAS, cluster, strict=True))
        self.cta = tuple(self._in_grid(axis, size) for axis, size in zip(_AXES, self.grid, strict=True))
        linear = plus(self.tid[0], times(plus(self.tid[1], times(self.tid[2], number(block[1]))), number(block[0])))
        self.thread, self.lane = linear, symbols.remainder(linear, _LANES)

    def anew(self, function: Function, module: Module) -> Environment:
        """The same for the same kernel, with variables of its own."""
        return Environment(function, module, self.block, self._pointers, Symbols(), self.same)

    def _own(self, axis: str, size: int) -> Number:
        return number(0) if size == 1 else self.symbols.fresh("t", f"tid.{axis}", (0, size - 1))

    def _size(self, axis: str, most: int, cluster: int) -> Number:
        """The grid along an axis: whole clusters."""
        if axis in self.flat:
            return number(1)
        found = self.symbols.fresh("p", f"nctaid.{axis}", (cluster, most), (cluster, SMALL))
        if cluster > 1:
            self.symbols.facts[str(found.term)].append(found.term % cluster == 0)
        return found

    def _in_grid(self, axis: str, size: Number) -> Number:
        if size.constant == 1:
            return number(0)
        found = self.symbols.fresh("c", f"ctaid.{axis}", (0, size.range[1] - 1), (0, SMALL - 1))
        self.symbols.facts[str(found.term)].append(found.term < size.term)
        return found

    def special(self, name: str) -> Number | None:
        """The value of a special register; None: it is not known."""
        root, _, axis = name.partition(".")
        values = {"%tid": self.tid, "%ctaid": self.cta, "%nctaid": self.grid, "%ntid": tuple(map(number, self.block))}
        if root in values and axis in _AXES:
            return values[root][_AXES.index(axis)]
        return self.lane if name == "%laneid" else None

    def variable(self, name: str) -> Number | None:
        """The address of a variable, or of a parameter's copy; None: of something else."""
        if name in self.shared:  # all variables whose size the launch gives begin at one address (ISA "Shared State Space")
            return number(0).on(("shared", name if self.shared[name] else DYNAMIC))
        return number(0).on(("global", name)) if name in self._global else None

    def bytes_of(self, name: str) -> int:
        """The size of a variable in shared memory, at most."""
        return self.shared.get(name, _MOST_SHARED)

    def word(self, place: int, offset: int, bits: int) -> Number:
        """A word of the parameters that is an integer."""
        name = next(name for name, each in self._places.items() if each == place)
        found = self.parameter(name, offset, bits)
        assert found is not None
        return found

    def words(self, load: Instruction) -> dict[Key, tuple[str, int]]:
        """The registers that a load of a parameter of the kernel writes, each with what it reads."""
        return parameter_words(load, self._places)

    def base_of(self, name: str, offset: int) -> Base | None:
        """The begin of the addresses that a word of the parameters points to; None: it is no pointer."""
        place = self._places.get(name)
        if place is None or not (place in self._pointers or (place, offset) in self._used):
            return None
        return "param", f"{self.same.get(place, place) if offset == 0 else place}+{offset}"

    def parameter(self, name: str, offset: int, bits: int) -> Number | None:
        """A word of the parameters: a pointer, or an integer."""
        if name not in self._places:
            return None
        place = self._places[name]
        if bits == 64 and (base := self.base_of(name, offset)) is not None:
            return number(0).on(base)
        key = place, offset, bits
        if key not in self.parameters:
            whole = limits(bits, signed=True)
            self.parameters[key] = self.symbols.fresh("p", f"param.{place}.{offset}", whole, (max(whole[0], -SMALL), min(whole[1], SMALL)))
        return self.parameters[key]

    def give(self, name: str, bits: int, value: int) -> None:
        """Let a parameter that nobody has read yet be a number."""
        low, high = limits(bits, signed=True)
        if name in self._places and low <= value <= high:
            self.parameters.setdefault((self._places[name], 0, bits), number(value))


def _cluster(function: Function) -> Shape:
    """The CTAs of a cluster, where the text says so."""
    given = function.directives.get("reqnctapercluster")
    return (1, 1, 1) if not given or isinstance(given, str) else three_extents(given)


def shared_sizes(function: Function, module: Module) -> dict[str, int]:
    """The bytes of each variable in shared memory; 0: as many as the launch gives."""
    return {name.name: each.nbytes(name) for each in _in_shared(function, module) for name in each.names}


def _in_shared(function: Function, module: Module) -> list[Variable]:
    inside = function.body.walk() if function.body is not None else ()
    return [each for each in (*module.variables, *(each for each in inside if isinstance(each, Variable))) if each.in_shared]


def _alignments(function: Function, module: Module) -> dict[str, int]:
    """The alignment of each variable in shared memory; that of those whose size the launch gives is the largest one of theirs."""
    found = dict[str, int]()
    for each in _in_shared(function, module):
        for name in each.names:
            key = name.name if each.nbytes(name) else DYNAMIC
            found[key] = max(each.alignment, found.get(key, 1))
    return found


def parameter_words(load: Instruction, parameters: Collection[str]) -> dict[Key, tuple[str, int]]:
    """The registers that a load of a parameter writes, each with the parameter and the byte of it at which its value begins."""
    row = row_of(load)
    if not (row.is_load and row.describe(load).is_parameter):
        return {}
    target, address = load.operands[:2]
    base, offset = (address.base, address.offset) if isinstance(address, Address) and address.index is None else (address, 0)
    if not isinstance(base, Symbol) or base.name not in parameters:
        return {}
    elements, size = target.elements if isinstance(target, Vector) else (target,), row.describe(load).width_bytes
    placed = ((each, offset + size * place) for place, each in enumerate(elements) if isinstance(each, Register) and each.text != "_")
    return {key_of(load.scope, each.name): (base.name, at) for each, at in placed}


def pointers_of(function: Function) -> list[int]:
    """The parameters that are pointers, by their types or by how the text uses them."""
    used = {place for place, offset in used_as_pointers(function) if offset == 0}
    words = [place for place, each in enumerate(function.params) if each.size is None and each.nbytes == _POINTER]
    return [place for place in words if function.params[place].pointer is not None or place in used]


def used_as_pointers(function: Function) -> set[tuple[int, int]]:
    """The words of the parameters that become addresses of global memory, or are addresses."""
    made = definitions(function)
    places = {parameter.name: place for place, parameter in enumerate(function.params)}
    found = set[tuple[int, int]]()
    for instruction in function.instructions():
        row = row_of(instruction)
        given = instruction.operands[1:] if converts(instruction, "global") else [each.address for each in row.accesses(instruction)]
        for name in (name for operand in given for name in names(operand)):
            key = key_of(instruction.scope, name)
            words = [parameter_words(each, places).get(key) for each in made.get(key, ())]
            found |= {(places[word[0]], word[1]) for word in words if word is not None}
    return found
