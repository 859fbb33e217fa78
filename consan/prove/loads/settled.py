"""Loads that give one value to all threads of a CTA that load from one address in one round, between the same two barriers.

Nobody writes there, as in parameters, or barriers of all threads alone order accesses: then a write between the two barriers races with one
of the two loads, and nothing is proven.
"""

from __future__ import annotations

from consan.instrument.isa import MemoryAccess, row_of
from consan.instrument.ptx import Function, Instruction
from consan.prove.atomics.broadcasts import is_simple, shared_loads
from consan.prove.environment import Environment
from consan.prove.kernel import has_strong_accesses
from consan.prove.loads.read_only import read_only_loads


def settled_loads(function: Function, environment: Environment) -> frozenset[int]:
    """Those of one kernel, by their starts in the text."""
    found, loads = read_only_loads(function, environment) | shared_loads(function), [*filter(_is_load, function.instructions())]
    found |= {each.start for each in loads if environment.words(each)}
    if not is_simple(function) or has_strong_accesses(function):
        return found
    return found | {each.start for each in loads if (touches := row_of(each).accesses(each)) and all(map(_is_global, touches))}


def _is_load(instruction: Instruction) -> bool:
    return bool(row_of(instruction).is_load)


def _is_global(touch: MemoryAccess) -> bool:
    return touch.is_visible and not touch.may_be_shared
