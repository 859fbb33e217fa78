"""Which relaxed loads give data: values that are added up or stored, and decide nothing (SEMANTICS 12, R-MO1).

Counters that are looked at, bounds, flags and words that hold a flag beside a value decide what a thread does next, or where: they go into
a comparison, a minimum, a choice, a mask, an address, an atomic or a branch. A value that is stored into shared memory, or by a strong
store, may decide in another thread, unless it is the result of floating-point arithmetic, or of arithmetic with two values that are
computed: an index or a flag is handed on as it is, or moved by a number of the text. So only loads whose values go into stores, and nowhere
else, give data; a vector does if no element of it decides. Compilers put several values into one register, as a zero of a counter and a sum
that begins with it: where the register decides something, each of its writes is followed by itself.

Not followed, so no data: values that pass local memory or a call.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping
from typing import Final, TypedDict

from consan.instrument.control_flow import Graph, Key, definitions, graph_of, guard_of, key_of, read, written
from consan.instrument.control_flow.dataflow import destinations, union
from consan.instrument.control_flow.registers import keys_read
from consan.instrument.control_flow.writes import destinations_of_writes
from consan.instrument.isa import MemoryAccess, adds, compares, converts, copies, hands_on, is_of_reals, lookup, polls, row_of
from consan.instrument.isa.roles import names
from consan.instrument.ptx import Address, Function, Immediate, Instruction, Operand, Register

_GLOBAL, _SHARED = ("global", "generic"), ("shared", "shared::cta")
_STORED, _SHOWN, _ELSEWHERE = 1, 2, 4  # where a value goes: into global memory, to where other threads look, into what may decide


class OfText(TypedDict):
    """The facts that R-MO1 needs of a strong access: it gives data, or counts; a loop may throw the value away and load again."""

    data: bool
    again: bool


_Step = tuple[int, int, Instruction]  # the node, the place in it
NEITHER: Final[OfText] = {"data": False, "again": False}


@functools.lru_cache(maxsize=256)
def flags_of(function: Function) -> dict[int, OfText]:
    """By the start of the strong loads that give data, and of the strong stores that count."""
    loads = loads_of_data(function)
    again = retried(function, loads)
    found: dict[int, OfText] = {start: {"data": True, "again": start in again} for start in loads}
    return found | {start: {"data": True, "again": False} for start in counting_stores(function)}


def loads_of_data(function: Function) -> frozenset[int]:
    """The starts of the relaxed loads that give data."""
    loads = [each for each in function.instructions() if _is_load(each)]
    goes = destinations(function, _used) if loads else {}
    found = frozenset(each.start for each in loads if union(goes, written(each)) == _STORED)
    return found | _by_writes(function, [each for each in loads if each.start not in found])


def _by_writes(function: Function, loads: list[Instruction]) -> frozenset[int]:
    """Those of some loads whose own values decide nothing, though another value of one of their registers does."""
    registers = _handed_to(function, {key for each in loads for key in written(each)})
    made = definitions(function)
    if not any(len(made[key]) > 1 for key in registers):
        return frozenset()
    goes = destinations_of_writes(graph_of(function), _used, registers)
    return frozenset(each.start for each in loads if union({key: goes[each.start, key] for key in written(each)}, written(each)) == _STORED)


def _handed_to(function: Function, registers: set[Key]) -> set[Key]:
    """Some registers, and those that get their values through instructions that hand them on."""
    found, fresh = set(registers), set(registers)
    steps = [(set(keys_read(each)), written(each)) for each in function.instructions() if registers and hands_on(each)]
    while fresh:
        fresh = {key for operands, results in steps if not operands.isdisjoint(found) for key in results} - found
        found |= fresh
    return found


def retried(function: Function, loads: frozenset[int]) -> frozenset[int]:
    """Those of some loads that stand between two strong reads of a word, or in a loop with one, as of a sequence lock.

    The second read, and the loop, may throw away what they give.
    """
    return frozenset(load.start for load, _, _ in _between_looks(function, loads))


@functools.lru_cache(maxsize=256)
def compared(function: Function) -> frozenset[int]:
    """The starts of the loads of data that stand between two strong reads of a word whose values are compared with each other (R-MO3).

    By that a reader of a sequence lock knows whether what it has loaded belongs together.
    """
    loads = loads_of_data(function)
    tests = [each for each in function.instructions() if compares(each)]
    if not loads or not tests:
        return frozenset()
    values = functools.cache(lambda look: _handed_to(function, set(written(look))))

    def meet(one: Instruction, other: Instruction) -> bool:
        pairs = (pair for test in tests for pair in itertools.permutations(keys_read(test), 2))
        return any(a in values(one) and b in values(other) for a, b in pairs)

    return frozenset(load.start for load, one, other in _between_looks(function, loads) if one is not other and meet(one, other))


def _between_looks(function: Function, loads: frozenset[int]) -> Iterator[tuple[Instruction, Instruction, Instruction]]:
    """Loads with a strong read of a word before each and one of the same word behind it."""
    graph = graph_of(function) if loads else Graph([])
    at = [(number, place, step.instruction) for number, node in enumerate(graph.nodes) for place, step in enumerate(node.steps)]
    looks = [each for each in at if polls(each[2]) and each[2].start not in loads]
    wanted = [each for each in at if each[2].start in loads]
    behind = {number: graph.behind(number) for number, _, _ in (*looks, *wanted)}
    made = definitions(function)
    words = {look[2].start: _word(look[2], made) for look in looks}

    def follows(one: _Step, other: _Step) -> bool:
        return other[0] in behind[one[0]] or (one[0] == other[0] and one[1] < other[1])

    for load in wanted:
        before = [look[2] for look in looks if follows(look, load)]
        after = [look[2] for look in looks if follows(load, look)]
        yield from ((load[2], one, other) for one in before for other in after if words[one.start] == words[other.start])


def _word(look: Instruction, made: Mapping[Key, list[Instruction]]) -> tuple[object, str]:
    """The word that a strong read looks at, by its address in the text; an instruction without one is a word of its own."""
    row = lookup(look.parts)
    address = row.event(look).first.address if row is not None and row.touches else None
    if address is None:
        return None, str(look.start)
    base = _origin(address.base, look, made) if isinstance(address, Address) and address.index is None else None
    return look.scope, address.text if base is None else f"{base}+{address.offset}"


def _origin(operand: Operand, user: Instruction, made: Mapping[Key, list[Instruction]]) -> str:
    """The register that an address comes from: where it is converted, or moved, it is still the same address."""
    maker = _only_maker(operand, user, made)
    moves = maker is not None and (copies(maker) or converts(maker, "global"))
    return _origin(maker.operands[1], maker, made) if maker is not None and moves else operand.text


def counting_stores(function: Function) -> frozenset[int]:
    """The starts of the strong stores that put back what their thread has loaded from there, increased by a number of the text."""
    made = definitions(function)
    return frozenset(each.start for each in function.instructions() if _is_count(each, made))


def _is_count(instruction: Instruction, made: Mapping[Key, list[Instruction]]) -> bool:
    row = lookup(instruction.parts)
    if row is None or not row.is_store or not row.touches or not row.event(instruction).first.is_strong:
        return False
    event = row.event(instruction)
    step = _only_maker(event.operand("src"), instruction, made)
    if step is None or not adds(step) or not any(isinstance(each, Immediate) for each in step.operands):
        return False
    loads = [_only_maker(each, step, made) for each in step.operands[1:]]
    return any(load is not None and _loads_from(load, event.first.address) for load in loads)


def _only_maker(operand: Operand | None, user: Instruction, made: Mapping[Key, list[Instruction]]) -> Instruction | None:
    makers = made.get(key_of(user.scope, operand.name), []) if isinstance(operand, Register) else []
    return makers[0] if len(makers) == 1 else None


def _loads_from(instruction: Instruction, address: Operand | None) -> bool:
    row = lookup(instruction.parts)
    at = row.event(instruction).first.address if row is not None and row.is_load and row.touches else None
    return at is not None and address is not None and at.text == address.text


def _is_load(instruction: Instruction) -> bool:
    row = lookup(instruction.parts)
    if row is None or not row.is_load or not row.touches:
        return False
    event = row.event(instruction)
    return event.first.is_strong and event.first.space in (*_GLOBAL, *_SHARED) and not event.orders


def _used(instruction: Instruction, goes: dict[Key, int]) -> Iterator[tuple[Key, int]]:
    """The registers that an instruction reads, and where their values go by it."""
    guard, stored = guard_of(instruction), _stored(instruction)
    if guard is not None:
        yield guard.register, _ELSEWHERE
    for name in {name for operand in instruction.operands for name in names(operand)} | set(read(instruction)):
        key = key_of(instruction.scope, name)
        if key not in written(instruction) or name in read(instruction):
            yield key, stored.get(name, 0) or _passed(instruction, goes)


def _passed(instruction: Instruction, goes: dict[Key, int]) -> int:
    """Where the result of an instruction goes; elsewhere, unless the instruction only hands on what it takes."""
    if not hands_on(instruction):
        return _ELSEWHERE
    ways = union(goes, written(instruction))
    return ways & ~_SHOWN | _STORED if ways & _SHOWN and (is_of_reals(instruction) or _sums(instruction)) else ways


def _sums(instruction: Instruction) -> bool:
    """Whether an instruction computes with two values, both of them no numbers of the text."""
    return row_of(instruction).is_arithmetic and sum(isinstance(each, Register) for each in instruction.operands[1:]) > 1


def _stored(instruction: Instruction) -> dict[str, int]:
    """For a store that is no release: the registers of its value that are no part of its address, and where they go."""
    row = lookup(instruction.parts)
    if row is None or not row.is_store or not row.touches:
        return {}
    event = row.event(instruction)
    source, address = event.operand("src"), event.first.address
    if source is None or event.orders:
        return {}
    inside = set(names(address)) if address is not None else set()
    return dict.fromkeys(set(names(source)) - inside, _space(event.first))


def _space(access: MemoryAccess) -> int:
    if access.is_strong or access.space in _SHARED:
        return _SHOWN
    return _STORED if access.space in _GLOBAL else _ELSEWHERE
