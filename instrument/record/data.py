"""Which relaxed loads give data: values that are added up or stored, and decide nothing (SEMANTICS 12, R-MO1).

Counters that are looked at, bounds, flags and words that hold a flag beside a value decide what a thread does next, or where: they go into
a comparison, a minimum, a choice, a mask, an address, an atomic or a branch. What is stored into shared memory, or by a strong store, may
decide in another thread, unless it is the result of floating-point arithmetic. So only loads whose values go into stores, and nowhere else,
give data.

Not followed, so no data: values that pass local memory or a call, and elements of vectors. All writes to one register count as one value.
"""

from __future__ import annotations

from collections.abc import Iterator

from consan.instrument.isa import MemoryAccess, hands_on, is_of_reals, lookup
from consan.instrument.isa.roles import names
from consan.instrument.passes.flow import Key, guard_of, key_of, read, written
from consan.instrument.ptx import Function, Instruction
from consan.instrument.record.uses import destinations, union

_OUTER, _SHARED = ("global", "generic"), ("shared", "shared::cta")
_STORED, _SHOWN, _ELSEWHERE = 1, 2, 4  # where a value goes: into global memory, to where other threads look, into what may decide


def loads_of_data(function: Function) -> frozenset[int]:
    """The starts of the relaxed loads that give data."""
    loads = [each for each in function.instructions() if _is_load(each)]
    goes = destinations(function, _used) if loads else {}
    return frozenset(each.start for each in loads if {goes.get(key, 0) for key in written(each)} == {_STORED})


def _is_load(instruction: Instruction) -> bool:
    row = lookup(instruction.parts)
    if row is None or row.family != "load" or not row.touches:
        return False
    event = row.event(instruction)
    return event.first.is_strong and event.first.space in _OUTER and event.first.count == 1 and not event.orders


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
    return ways & ~_SHOWN | _STORED if ways & _SHOWN and is_of_reals(instruction) else ways


def _stored(instruction: Instruction) -> dict[str, int]:
    """Of a store that is no release: the registers of its value that are no part of its address, and where they go."""
    row = lookup(instruction.parts)
    if row is None or row.family != "store" or not row.touches:
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
    return _STORED if access.space in _OUTER else _ELSEWHERE
