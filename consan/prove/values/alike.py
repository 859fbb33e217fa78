"""Which threads of a CTA have one value in a register: numbers that lanes have summed in pairs, and what all load from one place.

With each register goes a group of masks: for a mask `m` of it, the threads `t` and `t ^ m` have one value there, each time. It holds for
masks alone with which both threads of each pair go one way at each branch of the kernel, so that they execute the same instructions in the
same order, as often; but for branches that only choose between computations, whose results have the masks of the branch. Then:

- what is computed from registers has the masks that all of these have, and what follows from the number of the thread those of its table;
- a load has the masks of its address, where nobody writes, or where barriers of all threads alone order accesses: a write between the same
  two barriers would race with one of the two loads, and then nothing is proven;
- a shuffle hands values on between lanes `t` and `t ^ c` (ISA "shfl.sync", .bfly): it keeps the masks. If a lane then adds it to its own
  value, in either order the same bits, lanes `t` and `t ^ c` get one sum: `c` comes to the masks. `redux.sync` gives one to all lanes.
  Of other shuffles only masks of whole warps are kept.

A compiler may join a product and the sum of a step (`fma`), by itself or in `add` and `mul` without rounding (ISA "add", floating point):
then the two lanes round in their own ways, and the sum is alike but for its rounding (R-RACE). Sums in 64 bits count as such, too: the ISA
does not say which of two NaNs is left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import reduce
from operator import and_
from typing import Final

import numpy as np

from consan.instrument.control_flow import Graph, Key, definitions, key_of, keys_read, written
from consan.instrument.control_flow.dataflow import read_later
from consan.instrument.control_flow.slices import backward_slice
from consan.instrument.isa import (
    is_move,
    joins_lanes,
    keeps_payloads,
    leaves_rounding,
    rounds_reals,
    row_of,
    scales,
    shuffles,
    sums_reals,
    takes_either_order,
)
from consan.instrument.isa.roles import names
from consan.instrument.ptx import Function, Immediate, Instruction, Register
from consan.instrument.record.analyses.stored_values import chosen_registers
from consan.prove.environment import Environment, has_one_value
from consan.prove.kernel import ProvedKernel
from consan.prove.tables import WARP, Masks
from consan.prove.values.of_numbers import ThreadNumbers

_ALL_LANES: Final = (1 << WARP) - 1

_Taken = Key | str
"""Something that an instruction takes: a register, or the text of something else."""
_Held = tuple[int, tuple[_Taken, ...]]
"""How a register was made from others, which have been left as they were: a product of them, or, with bits, a lane's exchange."""


class AlikeThreads:
    """The masks of the registers of one kernel whose values are stored."""

    def __init__(self, kernel: ProvedKernel, function: Function, environment: Environment, loads: Collection[int]) -> None:
        """`environment`: with variables of its own. `loads`: those that give one value for one address, by their starts."""
        self._graph, self._loads, self._made = kernel.graph, loads, definitions(function)
        self._numbers = ThreadNumbers(kernel, function, environment)
        threads = self._numbers.threads
        self._all, self._none = np.ones(threads, bool), np.arange(threads) == 0
        self._way = self._all  # where both threads go one way
        self._undefined, self._chosen = self._read_first(), chosen_registers(self._graph)
        self._exact = dict.fromkeys(self._made, self._all) | dict.fromkeys(self._undefined, self._none)
        self._within = {key: self._all for each in self._chosen.values() for key in each}
        self._near = dict[Key, Masks]()
        self._followed = self._slice(function)
        self._exchanges = dict(_exchanges(self._graph, self._made))
        self._pairs = threads >= WARP and threads.bit_count() == 1
        while self._pairs and self._shrinks():
            pass

    def of_values(self, store: Instruction) -> tuple[Masks, Masks]:
        """The masks with which threads store one value, and those with which they do but for its rounding."""
        if not self._pairs:
            return self._none, self._none
        return self._of_all(store, self._exact), self._of_all(store, self._near)

    # -- what is followed --------------------------------------------------------------------------------------------------

    def _slice(self, function: Function) -> set[int]:
        """The instructions that stored values and branches follow from, by their starts."""
        seeds = [key for each in function.instructions() for key in _read(each) if row_of(each).is_store or _turns(each)]
        return {each.start for each in backward_slice(self._made, seeds, _read)}

    def _read_first(self) -> set[Key]:
        """The registers that may be read before they are written."""
        uses, makes = list[set[Key]](), list[set[Key]]()
        for node in self._graph.nodes:
            read, made = set[Key](), set[Key]()
            for step in node.steps:
                read |= {*_read(step.instruction)} - made
                made |= {*written(step.instruction)} if step.guard is None else set()
            uses.append(read)
            makes.append(made)
        later = read_later(self._graph.successors, uses, makes)
        return {key for each in self._graph.entries for key in uses[each] | (later[each] - makes[each])}

    def _shrinks(self) -> bool:
        """Go through the kernel once. Returns whether a group has lost a mask."""
        before = self._size()
        for node in self._graph.nodes:
            for each in (step.instruction for step in node.steps):
                if each.start in self._chosen:
                    here = self._joined(self._exact[key] for key in _read(each))
                    self._within |= {key: self._within[key] & here for key in self._chosen[each.start]}
                elif _turns(each):
                    self._way = self._way & self._joined(self._exact[key] for key in _read(each))
                if each.start in self._followed:
                    self._follow(each)
        return self._size() < before

    def _size(self) -> int:
        return sum(int(each.sum()) for each in (self._way, *self._exact.values(), *self._within.values()))

    def _follow(self, instruction: Instruction) -> None:
        exact, near = self._results(instruction)
        guard = self._joined(self._exact[key] for key in _guard(instruction)) & self._way
        for key in written(instruction):
            here = guard & self._within.get(key, self._all)
            self._exact[key] = self._exact[key] & exact & here
            one = len(self._made[key]) == 1 and key not in self._undefined
            self._near[key] = near & here if one else self._exact[key]

    # -- results -----------------------------------------------------------------------------------------------------------

    def _results(self, instruction: Instruction) -> tuple[Masks, Masks]:
        """The masks of what an instruction writes: those of one value, and those of one but for its rounding."""
        row = row_of(instruction)
        if row.is_load:
            found = self._of_load(instruction)
            return found, found
        exact, near = self._of_all(instruction, self._exact), self._of_all(instruction, self._near)
        if shuffles(instruction) and _is_of_warp(instruction):
            of_warps = exact & (np.arange(len(exact)) % WARP == 0)
            return (exact, near) if _exchanged(instruction) else (of_warps, of_warps)
        if self._is_of_all_lanes(instruction):
            found = reduce(_spanned, (1 << bit for bit in range(WARP.bit_length() - 1)), exact)
            return found, found
        if not (row.is_arithmetic or row.converts_address):
            return self._none, self._none
        exact = exact | self._numbers.of_result(instruction)
        if instruction.start not in self._exchanges:
            return exact, near | exact if is_move(instruction) or rounds_reals(instruction) else exact
        own, bit, rounds = self._exchanges[instruction.start]
        near = _spanned(self._near.get(own, self._none), bit)
        return exact if rounds else _spanned(self._exact[own], bit), near

    def _is_of_all_lanes(self, instruction: Instruction) -> bool:
        """Whether an instruction gives all lanes of a warp what all of them have together (ISA "redux.sync")."""
        if not joins_lanes(instruction) or instruction.predicate is not None:
            return False
        lanes = self._numbers.constant(instruction, instruction.operands[-1])
        return lanes is not None and lanes & _ALL_LANES == _ALL_LANES

    def _of_load(self, instruction: Instruction) -> Masks:
        return self._of_all(instruction, self._exact) if instruction.start in self._loads else self._none

    def _of_all(self, user: Instruction, masks: Mapping[Key, Masks]) -> Masks:
        """The masks of all that an instruction takes, whose first operand is a result, or an address to which it stores."""
        taken = user.operands[1:]
        return self._joined(self._of(user, name, masks) for each in taken for name in names(each))

    def _of(self, user: Instruction, name: str, masks: Mapping[Key, Masks]) -> Masks:
        if user.scope.is_register(name):
            return masks.get(key_of(user.scope, name), self._none)
        if not name.startswith("%") or has_one_value(name):
            return self._all
        return self._numbers.of_special(name)

    def _joined(self, parts: Iterable[Masks]) -> Masks:
        found: Masks = reduce(and_, parts, self._all)
        return found


def _spanned(masks: Masks, bit: int) -> Masks:
    """The group of some masks and one more."""
    moved: Masks = masks[np.arange(len(masks)) ^ bit]
    return masks | moved


def _guard(instruction: Instruction) -> tuple[Key, ...]:
    guard = instruction.predicate
    return () if guard is None else (key_of(instruction.scope, guard.register),)


def _read(instruction: Instruction) -> list[Key]:
    """The registers that an instruction and its guard read."""
    return [key for key in (*keys_read(instruction), *_guard(instruction)) if instruction.scope.is_register(key[1])]


def _turns(instruction: Instruction) -> bool:
    """Whether a thread may go on elsewhere, or end."""
    row = row_of(instruction)
    return bool(row.turns or row.branches or row.returns or row.leaves or row.traps or row.calls)


def _is_of_warp(shuffle: Instruction) -> bool:
    """Whether all lanes of a warp take part in a shuffle."""
    lanes = shuffle.operands[-1]
    return shuffle.predicate is None and isinstance(lanes, Immediate) and int(lanes.value) & _ALL_LANES == _ALL_LANES


def _exchanged(instruction: Instruction) -> int:
    """The bits in which the numbers of two lanes differ that exchange their values, all of a warp; 0: they do not."""
    if shuffles(instruction) != "bfly" or not _is_of_warp(instruction) or not isinstance(instruction.operands[0], Register):
        return 0
    bits, last = (int(each.value) if isinstance(each, Immediate) else 0 for each in instruction.operands[2:4])
    return bits if 0 < bits < WARP and last == WARP - 1 else 0


def _exchanges(graph: Graph, made: Mapping[Key, list[Instruction]]) -> Iterator[tuple[int, tuple[Key, int, bool]]]:
    """The instructions that join a lane's value and that of the lane it exchanges with, by their starts: the register, the bits of the
    lane's number, and whether the two lanes may round in their own ways.
    """
    ends = dict[int, dict[_Taken, _Held]]()
    for number, node in enumerate(graph.nodes):
        before = graph.predecessors[number]
        held = {} if len(before) != 1 or number in graph.entries else ends.get(before[0], {})
        for each in (step.instruction for step in node.steps):
            if (step := _step(each, made, held)) is not None:
                yield each.start, step
            keys, bits = written(each), _exchanged(each)
            held = {to: given for to, given in held.items() if not {to, *given[1]}.intersection(keys)}
            if bits or (scales(each) and each.predicate is None and keys[0] not in _taken(each)):
                held = {**held, keys[0]: (bits, _taken(each)[: 1 if bits else None])}
        ends[number] = held


def _taken(instruction: Instruction) -> tuple[_Taken, ...]:
    registers = ((each, instruction.scope.is_register(each.text)) for each in instruction.operands[1:])
    return tuple(key_of(instruction.scope, each.text) if known else each.text for each, known in registers)


def _step(instruction: Instruction, made: Mapping[Key, list[Instruction]], held: Mapping[_Taken, _Held]) -> tuple[Key, int, bool] | None:
    taken = _taken(instruction)
    if len(taken) < 2:
        return None
    orders = ((taken, taken[::-1]) if takes_either_order(instruction) else ()) if len(taken) == 2 else (taken,)
    for *own, other in orders:
        bits, (source, *_) = held.get(other, (0, ("",)))
        if not bits or isinstance(source, str):
            continue
        if own == [source]:
            return source, bits, _rounds(instruction, made.get(source, []))
        if len(own) == 2 and sums_reals(instruction) and sorted(map(str, own)) == sorted(map(str, held.get(source, (0, ()))[1])):
            return source, bits, True
    return None


def _rounds(instruction: Instruction, before: list[Instruction]) -> bool:
    """Whether two lanes that have the same two numbers, each as its own, may find other bits. `before`: what has made their own ones."""
    joined = sums_reals(instruction) and leaves_rounding(instruction)
    return keeps_payloads(instruction) or (joined and any((scales(each) and leaves_rounding(each)) or is_move(each) for each in before))
