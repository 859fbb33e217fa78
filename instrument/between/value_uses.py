"""The use of a value: the shortest way from an access to a store, a branch or an address that follows from it.

A forward slice of the text, through registers and through local and shared memory. It knows no order of writes to one register and no
places in memory, but for shared variables whose names the addresses show: so a use may be one that no execution makes, and "no use" is
certain. Among the threads that have the value, only those instructions count that one of them can come to from the access, as far as
their index in the CTA decides branches. Behind shared memory and what lanes exchange each thread counts.

Not followed, so that the answer is not known if nothing else is found: calls, tensor memory, instructions without a row.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Final

from consan.dataclass import dataclass
from consan.instrument.between.data import DataFlow
from consan.instrument.between.decided import DecidedBranches, holds
from consan.instrument.control_flow import CONTROL, Key, graph_of, guard_of, keys_read, written
from consan.instrument.control_flow.paths import reached
from consan.instrument.control_flow.slices import deciding_keys, operand_keys, touched_spaces
from consan.instrument.isa import Row, flow_of, lookup
from consan.instrument.ptx import Function, Instruction, Module
from consan.instrument.relations import Thread, ValueUse
from consan.instrument.rewriting.context import place_of
from consan.instrument.sites import Place

_FOLLOWED: Final = frozenset({"shared", "local"})  # memory that ends with the kernel
_UNKNOWN: Final = "unknown"


@dataclass(frozen=True)
class _Step:
    """Results of an instruction from the value: its registers, or what it leaves in memory. `anyone`: each thread may have it."""

    start: int  # of the instruction
    anyone: bool
    in_memory: bool = False


_Next = tuple[Instruction, "_Step | str"]  # an instruction, and what it makes of the value, or how it uses it up


class ValueUses:
    """The uses of values in one kernel."""

    def __init__(self, module: Module, function: Function, data: DataFlow) -> None:
        self._module, self._data, self._graph = module, data, graph_of(function)
        self._decided = DecidedBranches(self._graph, data)
        self._instructions = {each.start: each for each in function.instructions()}
        self._known: dict[tuple[int, tuple[Thread, ...]], ValueUse | None] = {}
        self._follows: dict[_Step, list[_Next]] = {}

    def of(self, line: int, threads: tuple[Thread, ...]) -> ValueUse | None:
        """See `relations.Relations.value_use`."""
        if (line, threads) not in self._known:
            access = self._by_line.get(line)
            self._known[line, threads] = None if access is None else self._used(access, threads)
        return self._known[line, threads]

    @cached_property
    def _by_line(self) -> dict[int, Instruction]:
        """The first instruction of each PTX line."""
        return {place_of(self._module, each).ptx_line: each for each in reversed(list(self._instructions.values()))}

    @cached_property
    def _users(self) -> dict[Key, list[Instruction]]:
        """The instructions that read each register, or are guarded by it."""
        found = defaultdict[Key, list[Instruction]](list)
        for each in self._instructions.values():
            guard = guard_of(each)
            keys = {key for operand in each.operands for key in operand_keys(each, operand)}
            if lookup(each.parts) is not None:
                keys -= set(written(each)) - set(keys_read(each))
            for key in keys | ({guard.register} if guard else set()):
                found[key].append(each)
        return found

    def _used(self, access: Instruction, threads: tuple[Thread, ...]) -> ValueUse | None:
        inside = self._executed(access, threads)
        use = self._shortest(access, inside)
        if use is None or not use.end:
            return use
        last = [use.path[-1].ptx_line] if use.end == "address" else []
        return replace(use, addresses=tuple(sorted({*self._addresses(access, inside), *last})))

    def _addresses(self, access: Instruction, inside: set[int]) -> Iterator[int]:
        """The PTX lines of accesses whose addresses follow from the value through registers."""
        pending = [each for each in _begun(access) if isinstance(each, _Step) and not each.in_memory]
        known = set(pending)
        while pending:
            for instruction, following in self._next(pending.pop(), inside):
                if following == "address":
                    yield place_of(self._module, instruction).ptx_line
                elif isinstance(following, _Step) and not following.in_memory and following not in known:
                    known.add(following)
                    pending.append(following)

    def _shortest(self, access: Instruction, inside: set[int]) -> ValueUse | None:
        first = list(_begun(access))
        parents: dict[_Step, _Step | None] = {each: None for each in first if isinstance(each, _Step)}
        pending, unknown = deque(parents), _UNKNOWN in first
        if end := next((each for each in first if each != _UNKNOWN and isinstance(each, str)), ""):
            return ValueUse(end, (place_of(self._module, access),))
        while pending:
            step = pending.popleft()
            for instruction, following in self._next(step, inside):
                if isinstance(following, _Step):
                    if following not in parents:
                        parents[following] = step
                        pending.append(following)
                elif following == _UNKNOWN:
                    unknown = True
                else:
                    return ValueUse(following, self._path(parents, step, instruction))
        return None if unknown else ValueUse("")

    def _path(self, parents: dict[_Step, _Step | None], last: _Step, end: Instruction) -> tuple[Place, ...]:
        starts, step = [end.start, last.start], parents[last]
        while step is not None:
            starts.append(step.start)
            step = parents[step]
        return tuple(place_of(self._module, self._instructions[each]) for each in reversed(starts))

    def _next(self, step: _Step, inside: set[int]) -> Iterator[_Next]:
        """The steps and ends that directly follow a step."""
        if step not in self._follows:
            self._follows[step] = list(self._anywhere(step))
        return (each for each in self._follows[step] if step.anyone or step.in_memory or each[0].start in inside)

    def _anywhere(self, step: _Step) -> Iterator[_Next]:
        """The same, whoever executes them."""
        instruction = self._instructions[step.start]
        if step.in_memory:
            spaces = touched_spaces(lookup(instruction.parts), instruction, "write")
            for each, read in self._readers:
                yield from ((each, made) for made in self._read_back(instruction, each, spaces, spaces & read, step))
            return
        for key in written(instruction):
            for user in self._users[key]:
                yield from ((user, made) for made in used(user, key, anyone=step.anyone))

    @cached_property
    def _readers(self) -> list[tuple[Instruction, set[str]]]:
        """The instructions that may read memory, and the state spaces that they read. Those too whose space the text does not name."""
        rows = ((each, lookup(each.parts)) for each in self._instructions.values())
        found = ((each, row, touched_spaces(row, each, "read")) for each, row in rows)
        return [(each, read) for each, row, read in found if read or row is None or row.calls or row.is_of_tensor_memory or row.is_product]

    def _read_back(self, store: Instruction, reader: Instruction, spaces: set[str], common: set[str], step: _Step) -> Iterator[_Step | str]:
        """The steps of an instruction that may read the value which a store has left in some spaces. `common`: those that both touch."""
        row = lookup(reader.parts)
        if row is None or row.calls or row.is_of_tensor_memory:
            yield _UNKNOWN
            return
        if row.is_product and "shared" in spaces:  # its descriptors name shared memory
            yield _Step(reader.start, anyone=True)
            return
        if not common or self._are_disjoint(store, reader):
            return
        if row.is_mbarrier:
            yield _UNKNOWN
        elif written(reader):
            yield _Step(reader.start, anyone=step.anyone or spaces != {"local"} or not row.is_load)
        if row.is_update:
            yield from _left(reader, row, anyone=True)
        elif not row.is_mbarrier and not written(reader):
            yield "copy"

    def _are_disjoint(self, one: Instruction, other: Instruction) -> bool:
        """Whether the addresses of two accesses follow from two shared variables."""
        names = {self._data.variable(each.line) for each in (one, other)}
        return len(names) == 2 and all(names)

    # --- threads ---

    def _executed(self, access: Instruction, threads: tuple[Thread, ...]) -> set[int]:
        """The instructions, by their start, that one of some threads may execute behind an access of theirs."""
        home = next(n for n, node in enumerate(self._graph.nodes) for step in node.steps if step.instruction is access)
        found = set[int]()
        for decisions in self._decided.of(threads):
            edges = self._decided.edges(decisions)
            if home not in reached(edges, self._graph.entries):
                continue
            behind = reached(edges, edges[home])
            for number in behind | {home}:
                steps = self._graph.nodes[number].steps
                later = steps if number in behind else [step for step in steps if step.instruction.start > access.start]
                guards = ((step, None if step.guard is None else decisions.get(step.guard.register)) for step in later)
                found |= {step.instruction.start for step, held in guards if held is None or holds(step.guard, held)}
        return found


def _begun(access: Instruction) -> Iterator[_Step | str]:
    """The values of an access: the one that it loads, and what an atomic operation or a store leaves."""
    row = lookup(access.parts)
    if row is None or row.is_of_tensor_memory:
        yield _UNKNOWN
        return
    if written(access):
        yield _Step(access.start, anyone=not (row.is_load or row.is_atomic))
    if row.is_store or row.is_update or not written(access):
        yield from _left(access, row, anyone=True)


def _left(access: Instruction, row: Row, *, anyone: bool) -> Iterator[_Step | str]:
    """The step that begins with the value that an instruction leaves in memory, or its end."""
    spaces = touched_spaces(row, access, "write")
    if not spaces or "param" in spaces or row.is_mbarrier:
        yield _UNKNOWN
    elif spaces <= _FOLLOWED:
        yield _Step(access.start, anyone=anyone or spaces != {"local"}, in_memory=True)
    else:
        yield "store"


def used(user: Instruction, key: Key, *, anyone: bool) -> Iterator[_Step | str]:
    """The steps of an instruction whose operand has the value, or its end."""
    row, guard = lookup(user.parts), guard_of(user)
    if row is None or row.calls or row.is_of_tensor_memory:
        yield _UNKNOWN
    elif flow_of(user) in CONTROL or (guard is not None and guard.register == key):
        yield "branch"
    elif row.is_arithmetic or row.is_of_addresses:
        yield _Step(user.start, anyone=anyone)
    elif row.touches:
        yield from ["address"] if key in deciding_keys(user, row) else _left(user, row, anyone=anyone)
    else:
        yield _Step(user.start, anyone=True) if written(user) and not row.synchronises else _UNKNOWN
