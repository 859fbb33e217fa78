"""Goes through a kernel with the numbers of all its threads, and notes what they access in global memory.

A path is a set of CTAs and a set of threads that take one way. Where a branch divides them, each part becomes a path. A branch that follows
from loaded values is taken both ways, and an access that may be left out is noted: then there are more accesses than the launch makes,
never fewer. Only instructions are executed that an address, a guard or a branch follows from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.decode.operands import flatten
from consan.instrument.isa import MemoryAccess, Row, flow_of, is_exact, lookup
from consan.instrument.passes.emit import Unsupported, address_parts, register_bits
from consan.instrument.passes.flow import CONTROL, Graph, Guard, Key, definitions, graph_of, key_of, read, written
from consan.instrument.ptx import Address, Function, Immediate, Instruction, Negated, Operand, Register, Symbol, Vector
from consan.ranges.operations import result
from consan.ranges.values import Fork, Signed, SpreadValue, Unknown, exact, of_part

Numbers = npt.NDArray[np.int64]
Dim3 = tuple[int, int, int]
_ORDINARY: Final = frozenset({"load", "store", "atomic", "reduction"})
_UNSEEN: Final = frozenset({"texture", "surface", "multimem", "call"})  # families that reach memory in ways that are not followed
_MOST_STEPS: Final = 10_000  # of all paths of a launch
_WIDE: Final = 64


class NotProven(Exception):  # noqa: N818
    """There is no proof: why. `never`: nor for any other launch of the kernel."""

    def __init__(self, why: str, *, never: bool = False) -> None:
        super().__init__(why)
        self.never = never


@dataclass(frozen=True)
class LaunchExtents:
    """The grid and the block of a launch."""

    grid: Dim3
    block: Dim3


@dataclass(frozen=True)
class SpreadAccess:
    """An access of some threads of each CTA of a path: the sum of both parts is the address. `own`: a thread may meet its own writes."""

    threads: Numbers
    of_cta: Signed
    of_thread: Signed
    nbytes: int
    writes: bool
    own: bool

    def kept(self, mask: npt.NDArray[np.bool_]) -> SpreadAccess:
        """The access in a set of CTAs."""
        return self if self.of_cta.size == 1 else replace(self, of_cta=self.of_cta[mask])


@dataclass
class Path:
    """Threads that take one way, and where they are. A register that is missing has an unknown value."""

    ctas: Numbers
    threads: Numbers
    node: int = 0
    step: int = 0
    registers: dict[Key, SpreadValue] = field(default_factory=dict)
    accesses: list[SpreadAccess] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Accesses of single threads."""
        return len(self.ctas) * sum(len(access.threads) for access in self.accesses)

    def parts(self, fork: Fork) -> Iterator[Path]:
        """The paths of the sets of a fork. Accesses so far stay with all CTAs, and with the first set of threads."""
        for number, mask in enumerate(fork.sets):
            registers = {key: value.kept(mask, of_threads=fork.of_threads) for key, value in self.registers.items()}
            if fork.of_threads:
                yield replace(self, threads=self.threads[mask], registers=registers, accesses=[] if number else self.accesses)
            else:
                yield replace(self, ctas=self.ctas[mask], registers=registers, accesses=[each.kept(mask) for each in self.accesses])

    def both(self, node: int) -> Path:
        """The same threads at another node: nobody knows which of them go there."""
        return replace(self, node=node, step=0, registers=dict(self.registers), accesses=[])


class Slice:
    """The part of a kernel that accesses follow from. Raises `NotProven` if it has something that is not followed."""

    def __init__(self, function: Function) -> None:
        if function.body is None:
            raise NotProven("it has no body", never=True)
        self.function = function
        self.parameters = tuple((parameter.name, parameter.nbytes) for parameter in function.params)
        for instruction in function.instructions():
            _check(instruction)
        graph: Graph = graph_of(function)
        self.nodes, self._made = graph.nodes, definitions(function)
        outer = [each for each in function.instructions() if _outer(each)]
        if any(map(_brings, self._sources(outer))):
            raise NotProven("an address follows from loaded values", never=True)
        ends = [each for each in function.instructions() if flow_of(each) in CONTROL]
        wanted = {key for each in (*outer, *ends) for key in _keys(each)}
        wanted |= {key for each in self._sources((*outer, *ends)) for key in _keys(each)}
        self.steps = [[each for each in node.steps if self._matters(each.instruction, wanted)] for node in graph.nodes]

    def _sources(self, instructions: Iterable[Instruction]) -> list[Instruction]:
        """The instructions that what some instructions read follows from: of an access, its address and its guard."""
        pending, seen, found = [key for each in instructions for key in _keys(each)], set[Key](), list[Instruction]()
        while pending:
            key = pending.pop()
            if key not in seen:
                seen.add(key)
                found += self._made.get(key, ())
                pending += (source for each in self._made.get(key, ()) for source in _keys(each))
        return found

    def _matters(self, instruction: Instruction, wanted: set[Key]) -> bool:
        return flow_of(instruction) in CONTROL or bool(_outer(instruction)) or not wanted.isdisjoint(written(instruction))


def _check(instruction: Instruction) -> None:
    row = lookup(instruction.parts)
    if row is None or row.family in _UNSEEN or row.flow in ("table", "break"):
        raise NotProven(f"{instruction.opcode} is not followed", never=True)
    try:
        outer = _outer(instruction)
        read(instruction), written(instruction)
    except ValueError:
        raise NotProven(f"the operands of {instruction.opcode} do not fit", never=True) from None
    followed = row.family in _ORDINARY or (row.family == "cp.async" and row.action == "async")
    if outer and not followed:
        raise NotProven(f"{instruction.opcode} is not followed", never=True)


def _base(access: MemoryAccess) -> tuple[Operand | None, int]:
    """The base of an address, and its offset; nothing where it has another form."""
    try:
        return (None, 0) if access.address is None else address_parts(access.address)
    except Unsupported:
        return None, 0


def _amount(instruction: Instruction) -> Operand | None:
    """The bytes that a copy reads, where that is an operand of its own (ISA "cp.async"): nothing is read if they are zero."""
    row = lookup(instruction.parts)
    operands = row.event(instruction).operands if row is not None and row.family == "cp.async" else ()
    return next((operand for role, operand in operands if role == "src-size"), None)


def _brings(instruction: Instruction) -> bool:
    """Whether an instruction brings a value from memory, or from other threads."""
    row = lookup(instruction.parts)
    loads = row is not None and row.family == "load" and row.describe(instruction).space == "param"
    return not loads and (row is None or row.family not in ("arithmetic", "address"))


def _outer(instruction: Instruction) -> tuple[MemoryAccess, ...]:
    return instruction.once(_accesses)


def _accesses(instruction: Instruction) -> tuple[MemoryAccess, ...]:
    row = lookup(instruction.parts)
    return () if row is None else tuple(each for each in row.accesses(instruction) if each.space in ("global", "generic"))


def _keys(instruction: Instruction) -> Iterator[Key]:
    """The registers that matter of those that an instruction reads: for an access those of its address, and always its guard."""
    names = read(instruction)
    if outer := _outer(instruction):
        bases = [_base(access)[0] for access in outer]
        names = tuple(base.name for base in (*bases, _amount(instruction)) if isinstance(base, (Register, Symbol)))
    guard = instruction.predicate
    for name in (*names, *((guard.register,) if guard is not None else ())):
        if instruction.scope.is_register(name):
            yield key_of(instruction.scope, name)


def accesses_of(kernel: Slice, parameters: Sequence[bytes], shape: LaunchExtents) -> list[Path]:
    """The paths through the kernel, each with its accesses. Raises `NotProven`."""
    return _Walk(kernel, parameters, shape).ended()


class _Walk:
    def __init__(self, kernel: Slice, parameters: Sequence[bytes], shape: LaunchExtents) -> None:
        self._kernel, self._shape = kernel, shape
        self._given = {name: data for (name, _), data in zip(kernel.parameters, parameters, strict=True)}
        self._left = _MOST_STEPS

    def ended(self) -> list[Path]:
        grid, block = self._shape.grid, self._shape.block
        pending = [Path(np.arange(math.prod(grid)), np.arange(math.prod(block)))]
        found = []
        while pending:
            path = pending.pop()
            try:
                if self._advance(path, pending):
                    found.append(path)
            except Fork as fork:
                pending += path.parts(fork)
        return found

    def _advance(self, path: Path, pending: list[Path]) -> bool:
        """Go on to the end of the path. Returns whether it has come there."""
        while True:
            steps, node = self._kernel.steps[path.node], self._kernel.nodes[path.node]
            while path.step < len(steps):
                self._left -= 1
                if not self._left:
                    raise NotProven("its threads take too many steps", never=True)
                if flow_of(steps[path.step].instruction) in CONTROL:
                    break
                self._execute(path, steps[path.step].instruction, steps[path.step].guard)
                path.step += 1
            ways = self._ways(path, node.guard, node.taken, node.falls)
            pending += (path.both(each) for each in ways[1:])
            if not ways:
                return True
            path.node, path.step = ways[0], 0

    def _ways(self, path: Path, guard: Guard | None, taken: tuple[int, ...], falls: int | None) -> tuple[int, ...]:
        """The nodes to go to. None: the kernel ends."""
        if guard is None:
            return taken or (() if falls is None else (falls,))
        value = path.registers.get(guard.register)
        if value is None:
            if any(each <= path.node for each in taken):
                raise NotProven("how often a loop runs follows from loaded values", never=True)
            return (*taken, *(() if falls is None else (falls,)))  # what ends here has told its accesses
        _divide(value)
        goes = bool(value.whole(1)[0]) is guard.value
        return taken if goes else () if falls is None else (falls,)

    def _execute(self, path: Path, instruction: Instruction, guard: Guard | None) -> None:
        held = None if guard is None else path.registers.get(guard.register)
        threads = None
        if guard is not None and held is not None:
            if _outer(instruction) and held.varies == (False, True):
                threads = (held.whole(1) != 0) == guard.value
            else:
                _divide(held)
                if bool(held.whole(1)[0]) is not guard.value:
                    return
        row = lookup(instruction.parts)
        assert row is not None
        if (reads := self._reads(path, instruction)) is not None:
            threads = reads if threads is None else threads & reads
        for access in _outer(instruction):
            path.accesses.append(self._access(path, instruction, row, access, threads))
        found = [] if guard is not None and held is None else self._results(path, instruction, row)
        for key in written(instruction):
            path.registers.pop(key, None)
        path.registers.update(found)

    def _reads(self, path: Path, instruction: Instruction) -> npt.NDArray[np.bool_] | None:
        """The threads whose copy reads something; None: all, or nobody knows. Raises `Fork` where CTAs differ in it."""
        operand = _amount(instruction)
        value = None if operand is None else self._operand(path, instruction, operand)
        if value is None or value.varies == (True, True):
            return None
        reads = value.whole(32) != 0
        if value.varies[0]:
            raise Fork([reads, ~reads])
        return np.broadcast_to(reads, path.threads.shape)

    def _access(
        self, path: Path, instruction: Instruction, row: Row, access: MemoryAccess, mask: npt.NDArray[np.bool_] | None
    ) -> SpreadAccess:
        base, offset = _base(access)
        value = None if base is None else self._operand(path, instruction, base)
        if value is None or (isinstance(base, Register) and register_bits(base.name, instruction.scope) != _WIDE):
            raise NotProven("an address is no sum of parts")
        try:
            of_cta, of_thread = exact(value, _WIDE, signed=True)
        except Unknown:
            raise NotProven("an address wraps") from None
        threads = path.threads
        if mask is not None:
            threads, of_thread = threads[mask], of_thread if of_thread.size == 1 else of_thread[mask]
        own = row.family in _ORDINARY and "nc" not in row.modifiers(instruction.parts)
        return SpreadAccess(threads, of_cta + offset, of_thread, access.total_bytes, access.access != "read", own)

    def _results(self, path: Path, instruction: Instruction, row: Row) -> list[tuple[Key, SpreadValue]]:
        """The values that an instruction writes, as far as they are known."""
        if row.family == "load":
            return self._parameter(instruction, row)
        converts = row.family == "address" and row.action == "convert" and "global" in instruction.parts
        if not (is_exact(instruction) or converts):
            return []
        flat = [inner for operand in instruction.operands for inner in flatten(operand)]
        count = len(written(instruction))
        if len(flat) <= count or not all(isinstance(each, Register) for each in flat[:count]):
            return []
        sources = [self._operand(path, instruction, each) for each in flat[count:]]
        if any(each is None for each in sources):
            return []
        bits = [register_bits(each.name, instruction.scope) for each in flat[:count] if isinstance(each, Register)]
        try:
            known = [each for each in sources if each is not None]
            values = result(instruction, known, bits, len(path.ctas), converts=converts)
        except Unknown:
            return []
        return list(zip(written(instruction), values, strict=True))

    def _operand(self, path: Path, instruction: Instruction, operand: Operand) -> SpreadValue | None:
        if isinstance(operand, Negated):
            value = self._operand(path, instruction, operand.operand)
            return None if value is None else of_part(np.uint64(1) - value.whole(1), of_threads=value.varies[1])
        if isinstance(operand, Immediate):
            return SpreadValue.same(int(operand.value)) if operand.kind == "int" else None
        if not isinstance(operand, Register):
            return None
        if instruction.scope.is_register(operand.name):
            return path.registers.get(key_of(instruction.scope, operand.name))
        return self._special(path, operand.name)

    def _special(self, path: Path, name: str) -> SpreadValue | None:
        """The number in a special register."""
        kind, _, axis = name[1:].partition(".")
        if kind == "laneid":
            return of_part((path.threads % 32).astype(np.uint64), of_threads=True).collapsed()
        if kind not in _SPECIAL or axis not in tuple("xyz"):
            return None
        number = "xyz".index(axis)
        extents = self._shape.grid if "cta" in kind else self._shape.block
        if kind.startswith("n"):
            return SpreadValue.same(extents[number])
        of_threads = kind == "tid"
        places = (path.threads if of_threads else path.ctas) // math.prod(extents[:number]) % extents[number]
        return of_part(places.astype(np.uint64), of_threads=of_threads).collapsed()

    def _parameter(self, instruction: Instruction, row: Row) -> list[tuple[Key, SpreadValue]]:
        """The numbers that a load from the parameters brings."""
        access = row.describe(instruction)
        address = access.address
        base, offset = (address.base, address.offset) if isinstance(address, Address) and address.index is None else (address, 0)
        if access.space != "param" or not isinstance(base, Symbol) or base.name not in self._given:
            return []
        data, signed = self._given[base.name], instruction.parts[-1].startswith("s")
        target = instruction.operands[0]
        elements = target.elements if isinstance(target, Vector) else (target,)
        found = []
        for number, element in enumerate(elements):
            piece = data[offset + number * access.width_bytes :][: access.width_bytes]
            if isinstance(element, Register) and len(piece) == access.width_bytes:
                whole = int.from_bytes(piece, "little", signed=signed) & (1 << register_bits(element.name, instruction.scope)) - 1
                found.append((key_of(instruction.scope, element.name), SpreadValue.same(whole)))
        return found


_SPECIAL: Final = frozenset({"tid", "ntid", "ctaid", "nctaid"})


def _divide(value: SpreadValue) -> None:
    """Raise `Fork` if a predicate differs between CTAs, or between threads."""
    if any(value.varies):
        holds = value.whole(1) != 0
        raise Fork([holds, ~holds], of_threads=value.varies[1])
