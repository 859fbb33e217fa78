"""Follows data through a kernel: the values of operands, the variables behind addresses, the loads behind stores.

Follows registers that one instruction writes. Control flow does not matter here (`flow.py`).
"""

from __future__ import annotations

import functools
import operator
from functools import cached_property
from typing import Final

from consan.instrument.between.lane_sums import LaneSums
from consan.instrument.between.synchronising import is_sync, matters, touched_by
from consan.instrument.control_flow import Key, definitions, graph_of, key_of
from consan.instrument.control_flow.paths import reached
from consan.instrument.control_flow.places import instructions_of
from consan.instrument.isa import combines_from, compares, compares_and_swaps, finds_larger, is_move, row_of
from consan.instrument.isa.roles import names
from consan.instrument.ptx import Address, Function, Immediate, Instruction, Module, Operand, Register, Symbol, SymbolOffset, Vector
from consan.instrument.relations import Counted, Stores, SyncPoint, Value, is_plain
from consan.instrument.rewriting.context import place_of
from consan.instrument.sites import Place

_ROLES: Final = ("barrier", "group-count", "mask", "parity")  # the meaning of `SyncPoint.number`
_DEPTH: Final = 12  # limit of the arithmetic that is followed for one operand
_CHAIN: Final = 64  # limit of the instructions that are followed from a stored value to a load
_UNKNOWN: Final = Value("unknown")


class DataFlow:
    """The data flow of one kernel."""

    def __init__(self, module: Module, function: Function) -> None:
        self._module, self._function = module, function
        self._known: dict[int, str] = {}  # variables, by the lines of accesses
        self._instructions = [instruction for instruction in function.instructions() if matters(instruction)]

    @cached_property
    def _by_line(self) -> dict[int, Instruction]:
        """The first instruction of each PTX line."""
        return {place_of(self._module, instruction).ptx_line: instruction for instruction in reversed(self._instructions)}

    @cached_property
    def _definitions(self) -> dict[Key, list[Instruction]]:
        return definitions(self._function)

    def definition(self, user: Instruction, register: str) -> Instruction | None:
        """The one instruction that writes a register."""
        return self._written_by(key_of(user.scope, register))

    def _written_by(self, register: Key) -> Instruction | None:
        found = self._definitions.get(register, ())
        return found[0] if len(found) == 1 else None

    def origin(self, user: Instruction, register: str) -> Key:
        """The register that one is a copy of, also as an address of another state space."""
        key = key_of(user.scope, register)
        for _ in range(_DEPTH):
            made = self._written_by(key)
            if made is None or made.predicate is not None or not (is_move(made) or row_of(made).converts_address):
                break
            if not isinstance(made.operands[-1], Register):
                break
            key = key_of(made.scope, made.operands[-1].text)
        return key

    def load(self, line: int) -> Instruction | None:
        """The load of a PTX line."""
        found = self._by_line.get(line)
        return found if found is not None and row_of(found).is_load else None

    def updates(self, line: int) -> int:
        """The line of the load that the store of a PTX line puts back, changed, at the same address, or compares its value with."""
        store = self._by_line.get(line)
        if store is None or not row_of(store).is_store or not isinstance(address := store.operands[0], Address):
            return 0
        load = self._load_behind(store, address) or self.compared(line)
        return place_of(self._module, load).ptx_line if load is not None and self._keeps(address.base, load, store) else 0

    def _keeps(self, base: Operand, load: Instruction, store: Instruction) -> bool:
        """Whether the base of an address is surely the same at a store as at a load before."""
        if not isinstance(base, Register) or self.definition(store, base.name) is not None:
            return True
        made = self._last_before(store, key_of(store.scope, base.name))
        return made is self._last_before(load, key_of(load.scope, base.name)) and self._steps.get(load, (-1,))[0] == self._steps[store][0]

    @cached_property
    def _steps(self) -> dict[Instruction, tuple[int, int]]:
        """Where each instruction is: its node of the graph, and its number there."""
        nodes = instructions_of(graph_of(self._function))
        return {each: (node, at) for node, steps in enumerate(nodes) for at, each in enumerate(steps)}

    def _last_before(self, user: Instruction, register: Key) -> Instruction | None:
        """The last write of a register before its user in the same node of the graph; None if there is none."""
        node, end = self._steps.get(user, (-1, 0))
        made = [each for each in self._definitions.get(register, ()) if self._steps.get(each, (-2, 0))[0] == node]
        return max((each for each in made if self._steps[each][1] < end), key=lambda each: self._steps[each][1], default=None)

    def combines(self, line: int) -> bool:
        """Whether the store of a PTX line puts back what one operation makes of the loaded value and another: an atomic one can be that."""
        store = self._by_line.get(line)
        register = next(iter(names(store.operands[1:])), "") if store is not None else ""
        found = self._sources(store, register) if store is not None and register else []
        made = [each for each in found if not row_of(each).is_load]
        return bool(made) and all(self._combines(each, self.updates(line)) for each in made)

    def _combines(self, made: Instruction, load: int) -> bool:
        """Whether an instruction combines what the load of a PTX line gives with another value."""
        first = combines_from(made)
        sources = [each for name in names(made.operands[first:]) for each in self._sources(made, name)] if first is not None else []
        return any(row_of(each).is_load and place_of(self._module, each).ptx_line == load for each in sources)

    def _sources(self, user: Instruction, register: str) -> list[Instruction]:
        """The instruction that writes a register, or the last one that surely does before the user; of one that a loop sums up in
        (`%f1 = %f1 + %f2`) all. Else empty.
        """
        key = key_of(user.scope, register)
        found = self._definitions.get(key, [])
        last = self._last_before(user, key) if len(found) > 1 else None
        if last is not None and last.predicate is None and key not in [key_of(last.scope, name) for name in names(last.operands[1:])]:
            return [last]
        starts = [each for each in found if key not in [key_of(each.scope, name) for name in names(each.operands[1:])]]
        return found if len(found) == 1 or (len(starts) == 1 and row_of(starts[0]).is_load) else []

    def summed_lanes(self, line: int) -> int:
        """The bits of the lane's number over which the lanes have summed all values of the store of a PTX line (lane_sums.py)."""
        store = self._by_line.get(line)
        if store is None or not row_of(store).is_store or len(store.operands) < 2:
            return 0
        value, sums = store.operands[1], LaneSums(self)
        elements = value.elements if isinstance(value, Vector) else (value,)
        return functools.reduce(operator.and_, (sums.lanes(store, each) for each in elements))

    def compared(self, line: int) -> Instruction | None:
        """The load of an integer from the address of a store, if the store is made only where a comparison of it with the value holds.

        Not so, if another store has what was loaded: then the two elements change places, which no maximum does.
        """
        store = self._by_line.get(line)
        if store is None or not row_of(store).is_store or not isinstance(store.operands[1], Register):
            return None
        value = key_of(store.scope, store.operands[1].name)
        for each in filter(finds_larger, self._function.instructions()):
            keys = [key_of(each.scope, name) for name in names(each.operands[1:3])]
            loads = [found for key in keys if key != value and (found := self._written_by(key)) is not None and row_of(found).is_load]
            if value in keys and loads and loads[0].operands[1] == store.operands[0] and self._decides(each, store):
                return None if self._is_moved(loads[0]) else loads[0]
        return None

    def _is_moved(self, load: Instruction) -> bool:
        """Whether a store has the loaded value as it is."""
        loaded = {key_of(load.scope, name) for name in names(load.operands[:1])}
        stores = (each for each in self._instructions if row_of(each).is_store)
        return any(key_of(each.scope, name) in loaded for each in stores for name in names(each.operands[1:]))

    def checks(self, line: int) -> set[int]:
        """The lines of the loads from the address of a write whose values decide whether it is made, and are stored nowhere."""
        write = self._by_line.get(line)
        if write is None or compares_and_swaps(write) or not (row_of(write).is_store or row_of(write).is_update):
            return set()
        address = next((each for each in write.operands if isinstance(each, Address)), None)
        found = set[int]()
        for each in filter(compares, self._function.instructions()) if address is not None else ():
            sources = (self._written_by(key_of(each.scope, name)) for name in names(each.operands[1:]))
            loads = [load for load in sources if load is not None and row_of(load).is_load and load.operands[1] == address]
            if loads and self._decides(each, write):
                found |= {place_of(self._module, load).ptx_line for load in loads if not self._is_moved(load)}
        return found

    def _decides(self, comparison: Instruction, store: Instruction) -> bool:
        """Whether a store, or a branch on the way to it, has the predicate of a comparison."""
        made = {key_of(comparison.scope, name) for name in names(comparison.operands[:1])}
        between = (
            each for each in self._function.instructions() if comparison.start < each.start <= store.start and each.predicate is not None
        )
        users = (each for each in between if each is store or (row_of(each).branches and self._turns_away(each, store)))
        return any(key_of(each.scope, each.predicate.register) in made for each in users if each.predicate is not None)

    def _turns_away(self, branch: Instruction, store: Instruction) -> bool:
        """Whether a branch leads past a store, or back: not all its ways come to the store without coming to the branch again."""
        graph, (node, _), (end, _) = graph_of(self._function), self._steps[branch], self._steps[store]
        return not all(end in reached(graph.successors, (each,), without=(node,)) for each in graph.successors[node])

    def _load_behind(self, user: Instruction, address: Address, followed: set[int] | None = None) -> Instruction | None:
        """The load from an address from which the value of a store is computed, through registers written once, or summed up in.

        Of a register that branches write, each of the values is computed from such a load (bit-fields: the branches' stores are one).
        """
        pending, seen = [user], followed if followed is not None else set[int]()
        while pending and len(seen) < _CHAIN:
            instruction = pending.pop()
            if row_of(instruction).is_load:
                if instruction.operands[1] == address:
                    return instruction
                continue
            seen.add(id(instruction))
            for name in names(instruction.operands[1:]):
                sources = self._sources(instruction, name)
                pending += [each for each in sources if id(each) not in seen]
                branches = [] if sources else self._definitions.get(key_of(instruction.scope, name), [])
                loads = [self._load_behind(each, address, seen) for each in branches if id(each) not in seen]
                if len(loads) == len(branches) and None not in loads and loads:
                    return loads[0]
        return None

    def stores(self, line: int) -> Stores | None:
        """The places of the stores to the variable that the access of a PTX line touches, each once."""
        reader = self._by_line.get(line)
        touched = next(touched_by(reader, ("read", "rmw")), None) if reader is not None else None
        wanted = self._variables(touched.address, reader) if touched is not None and reader is not None else set[str]()
        if len(wanted) != 1 or touched is None or reader is None:
            return None
        found = [(i, self._variables(each.address, i)) for i in self._instructions for each in touched_by(i, ("write", "rmw"))]
        stores = [i for i, variables in found if wanted & variables]
        if not stores and not all(variables for _, variables in found):
            return None
        size = touched.total_bytes or (self.operand(touched.size, reader).of(None) if touched.size is not None else None)
        places = {identity(at): at for at in (place_of(self._module, i) for i in stores)}
        return Stores(tuple(places.values()), size or 0)

    def variable(self, line: int) -> str:
        """The shared variable that the access of a PTX line is computed from; empty if there are several, or none."""
        if line not in self._known:
            self._known[line] = self._variable(line)
        return self._known[line]

    def _variable(self, line: int) -> str:
        access = self._by_line.get(line)
        touched = next(touched_by(access, ("read", "write", "rmw")), None) if access is not None else None
        found = self._variables(touched.address, access) if touched is not None and access is not None else set[str]()
        return found.pop() if len(found) == 1 else ""

    def _variables(self, address: Operand | None, user: Instruction) -> set[str]:
        """The variables that an address is computed from, through registers that are written once."""
        pending, seen, found = [(address, user)], set[int](), set[str]()
        while pending and len(seen) < _CHAIN:
            operand, scope = pending.pop()
            base = operand.base if isinstance(operand, Address | SymbolOffset) else operand
            if isinstance(base, Symbol):
                found.add(base.name)
            definition = self.definition(scope, base.name) if isinstance(base, Register) else None
            if definition is not None and not row_of(definition).is_load and id(definition) not in seen:
                seen.add(id(definition))
                pending += [(each, definition) for each in definition.operands[1:]]
        return found

    def point(self, instruction: Instruction) -> SyncPoint | None:
        """The instruction as a point; None if it does not synchronise."""
        row = row_of(instruction)
        if not is_sync(row):
            return None
        numbered = row.is_barrier or row.is_mbarrier or row.waits_for_groups
        roles = dict(zip(row.roles(instruction), instruction.operands, strict=False)) if numbered else {}
        number = next((self.operand(roles[role], instruction) for role in _ROLES if role in roles), None)
        count = self.operand(roles["count"], instruction) if "count" in roles and not row.is_mbarrier else None
        return SyncPoint(instruction.opcode, place_of(self._module, instruction), number, count)

    def counted(self, line: int) -> Counted | None:
        """The thread count of the barrier of a PTX line."""
        barrier = self._by_line.get(line)
        if barrier is None or not row_of(barrier).is_cta_barrier:
            return None
        operand = dict(zip(row_of(barrier).roles(barrier), barrier.operands, strict=False)).get("count")
        if operand is None:
            return None
        definition = self.definition(barrier, operand.name) if isinstance(operand, Register) else None
        return Counted(self.operand(operand, barrier), place_of(self._module, definition) if definition is not None else None)

    def operand(self, operand: Operand, instruction: Instruction, depth: int = _DEPTH) -> Value:
        """An operand as arithmetic on the thread index, as far as its registers are written once."""
        if isinstance(operand, Immediate) and isinstance(operand.value, int):
            return Value("", constant=operand.value)
        if not isinstance(operand, Register) or not depth:
            return _UNKNOWN
        if operand.name.startswith("%tid."):
            return Value(operand.name)
        return self.value_of(key_of(instruction.scope, operand.name), depth)

    def value_of(self, register: Key, depth: int = _DEPTH) -> Value:
        """The value of a register, from the one instruction that writes it."""
        definition = self._written_by(register)
        if definition is None or definition.predicate is not None or not is_plain(definition.parts):
            return _UNKNOWN
        return Value(definition.opcode, tuple(self.operand(each, definition, depth - 1) for each in definition.operands[1:]))


def identity(place: Place) -> tuple[object, ...]:
    """The key that instructions of one source place share. Without line information an instruction has its own key."""
    if not place.file:
        return place.ptx_line, place.opcode
    return place.opcode, place.file, place.line, place.column, place.inlined
