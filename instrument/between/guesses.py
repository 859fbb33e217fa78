"""Loads whose value is a first guess for a compare-and-swap of the same bytes, which repeats where the guess is wrong.

    ld.global.u64 %rd1, [%rd2];                     // a guess
    $L: ... atom.global.cas.b64 %rd4, [%rd2], %rd1, %rd3;
    setp.ne.s64 %p1, %rd1, %rd4;  mov.u64 %rd1, %rd4;  @%p1 bra $L;

The swap happens only where the bytes have the value that was guessed, so the result is the same whatever the load has found. The value
may go to the compared operand, through arithmetic to the new one, and to the comparison with what the swap has found; nowhere else but to
a comparison with the new one that decides whether to swap (a minimum that is no smaller): the update that is left out changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from functools import cached_property

from consan.dataclass import dataclass
from consan.instrument.between.data import DataFlow
from consan.instrument.between.value_uses import used
from consan.instrument.control_flow import CONTROL, Graph, Key, guard_of, key_of, keys_read, written
from consan.instrument.control_flow.places import Place, instructions_of, places_reached
from consan.instrument.isa import adds, compares, compares_and_swaps, flow_of, is_move, lookup, row_of, says_equal
from consan.instrument.ptx import Address, Instruction, Operand, Register, Symbol

Terms = tuple[str, ...]


@dataclass
class FirstGuess:
    """The uses of the value of one load."""

    load: Instruction
    graph: Graph
    data: DataFlow
    _swaps: set[int] = field(default_factory=set)  # by their start: those that compare with the value itself
    _others: set[int] = field(default_factory=set)  # those that store what follows from it

    def holds(self) -> bool:
        """Whether the value goes nowhere else."""
        if not self._all_swaps:
            return False
        pending = [(self.load, key, True) for key in written(self.load)]
        seen = set(pending)
        while pending:
            made, key, is_copy = pending.pop()
            for user in self._readers(made, key):
                following = self._following(user, key, is_copy)
                if following is None:
                    return False
                new = {(user, each, is_copy and is_move(user)) for each in following} - seen
                seen |= new
                pending += new
        return bool(self._swaps) and self._others <= self._swaps

    def _readers(self, made: Instruction, key: Key) -> Iterator[Instruction]:
        """The instructions that may read what one has written to a register."""
        node, at = self._places[made.start]

        def is_over(instruction: Instruction) -> bool:
            return key in written(instruction) and guard_of(instruction) is None

        edges = [self._where_wrong(number, key) for number in range(len(self._steps))]
        places = places_reached(self._steps, edges, [(node, at + 1)], is_over)
        return (each for number, place in places if _reads(each := self._steps[number][place], key))

    def _where_wrong(self, number: int, key: Key) -> tuple[int, ...]:
        """The nodes behind one. Where a branch says that a swap has found the value of a register, the value is no guess any more."""
        node = self.graph.nodes[number]
        tests = [each for each in self._steps[number] if node.guard is not None and node.guard.register in written(each)]
        if node.guard is None or not tests or not self._says_whether_swapped(tests[-1], key):
            return node.successors
        is_wrong = node.guard.value != says_equal(tests[-1])
        return node.taken if is_wrong or node.falls is None else (node.falls,)

    @cached_property
    def _steps(self) -> list[list[Instruction]]:
        return instructions_of(self.graph)

    @cached_property
    def _places(self) -> dict[int, Place]:
        return {each.start: (node, at) for node, steps in enumerate(self._steps) for at, each in enumerate(steps)}

    def _following(self, user: Instruction, key: Key, is_copy: bool) -> tuple[Key, ...] | None:
        """The registers that an instruction makes of the value; None: it uses the value in another way."""
        if any(user is each for each in self._all_swaps):
            compared, stored = (_key(user, each) for each in user.operands[2:4])
            (self._swaps if key == compared and is_copy else self._others).add(user.start)
            return () if key in (compared, stored) else None
        if (is_copy and self._says_whether_swapped(user, key)) or self._decides_whether_to_swap(user):
            return ()
        ends = (isinstance(each, str) or each.in_memory for each in used(user, key, anyone=False))
        return None if any(ends) else written(user)

    @cached_property
    def _all_swaps(self) -> list[Instruction]:
        """The compare-and-swaps of the bytes that were loaded."""
        atomics = (each for steps in self._steps for each in steps if compares_and_swaps(each) and row_of(each).is_atomic)
        return [each for each in atomics if self._place(each) == self._place(self.load) is not None]

    def _place(self, access: Instruction) -> tuple[Terms, int] | None:
        """The terms that the base of an access is the sum of, and the offset from there. None: the base may change."""
        address = access.operands[1]
        if not isinstance(address, Address):
            return None
        terms = self._terms(access, address.base)
        return None if terms is None else (terms, address.offset)

    def _terms(self, user: Instruction, operand: Operand) -> Terms | None:
        """The terms of the sum that an operand is: variables, and registers that are written once. None: something else."""
        if isinstance(operand, Symbol):
            return (operand.name,)
        made = self.data.definition(user, operand.name) if isinstance(operand, Register) else None
        if made is None or (key := _key(user, operand)) is None:
            return None
        whole: Terms = (str(key),)
        if guard_of(made) is not None:
            return whole
        if is_move(made) or row_of(made).converts_address:
            return self._terms(made, made.operands[1]) or whole
        parts = [self._terms(made, each) for each in made.operands[1:]] if adds(made) else [None]
        return whole if None in parts else tuple(sorted(term for each in parts for term in each or ()))

    def _says_whether_swapped(self, comparison: Instruction, key: Key) -> bool:
        """Whether an instruction compares the value with what a swap has found in its place."""
        if says_equal(comparison) is None:
            return False
        one, other = (_key(comparison, each) for each in comparison.operands[1:3])
        found = other if key == one else one
        makers = [each for each in self._all_swaps if _key(each, each.operands[2]) == key]
        return found is not None and found in [_key(each, each.operands[0]) for each in makers]

    def _decides_whether_to_swap(self, comparison: Instruction) -> bool:
        """Whether an instruction compares the two values of a swap, and decides nothing but where the thread goes on."""
        if not compares(comparison):
            return False
        both = {_key(comparison, each) for each in comparison.operands[1:3]}
        if not any(both == {_key(each, part) for part in each.operands[2:4]} for each in self._all_swaps):
            return False
        return all(flow_of(each) in CONTROL for key in written(comparison) for each in self._readers(comparison, key))


def _reads(user: Instruction, key: Key) -> bool:
    guard = guard_of(user)
    return lookup(user.parts) is None or key in keys_read(user) or (guard is not None and guard.register == key)


def _key(user: Instruction, operand: Operand) -> Key | None:
    return key_of(user.scope, operand.name) if isinstance(operand, Register) else None
