"""Loads that a compiler has lifted above their condition go back below it.

A compiler may load a variable for all threads, where the program loads it for some, and throw the value away in the others:

    ld.shared.u32 %r4, [word];        // if (threadIdx.x < 32) r = word;
    selp.b32 %r5, %r4, 0, %p2;

The threads that throw it away have no access in the program, so the load gets the guard `@%p2`. Only loads from a variable itself are
lifted: an address that is computed may lie anywhere.

A load of shared memory from a computed address is the program's own, and so is the choice, as of a masked tail. The threads that throw the
value away load it into a register that nothing reads (R-UNINIT):

    @%p2 ld.shared.u32 %r4, [%r1]; { .reg .b32 %thrown_away0; @!%p2 ld.shared.u32 %thrown_away0, [%r1]; }

No line of the text moves.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from dataclasses import field

from consan.dataclass import dataclass
from consan.instrument.control_flow import BasicBlock, Guard, Key, graph_of, guard_of, key_of, written
from consan.instrument.isa import chooses, computes, decides_with, row_of
from consan.instrument.isa.roles import names
from consan.instrument.ptx import Block, Edits, Function, Instruction, Label, Module, Operand, Register, Symbol, Vector, parse

_ALWAYS = Guard((-1, ""), value=True)  # the value is needed whatever holds
_NAME = re.compile(r"[%$\w]+")
_THROWN_AWAY = "%thrown_away"
Need = Guard | None  # the condition under which a value is needed; None: never


def lowered(module: Module) -> Module:
    """The module with such loads under their conditions."""
    edits = Edits(module)
    for function in module.functions:
        if function.body is not None and _has_choice(function.body):
            _lower(function, edits)
    return parse(edits.apply(), module.name) if len(edits) else module


def is_thrown_away(target: Operand | None) -> bool:
    """Whether a load is the one of the threads that throw the value away."""
    first = target.elements[0] if isinstance(target, Vector) else target
    return isinstance(first, Register) and first.name.startswith(_THROWN_AWAY)


def _is_of_variable(load: Instruction) -> bool:
    return isinstance(getattr(load.operands[1], "base", None), Symbol)


def _may_be_lifted(instruction: Instruction) -> bool:
    """Whether it is a weak load of a variable, or of a computed place in shared memory."""
    row = row_of(instruction)
    if not row.is_load or instruction.predicate is not None or not row.fits(instruction):
        return False
    access = row.event(instruction).first
    return not access.is_strong and (access.in_shared or access.in_global) and (_is_of_variable(instruction) or not access.in_global)


def _has_choice(body: Block) -> bool:
    """Whether a value that is made of such a load is chosen from, or decides, in the node of the load. Most functions end here."""
    made = set[str]()
    for statement in body.walk():
        if isinstance(statement, Label) or (isinstance(statement, Instruction) and row_of(statement).turns):
            made.clear()
        elif isinstance(statement, Instruction) and (_may_be_lifted(statement) or not made.isdisjoint(_NAME.findall(statement.text))):
            if chooses(statement) or decides_with(statement) is not None:
                return True
            made.update(name for _, name in written(statement))
    return False


def _lower(function: Function, edits: Edits) -> None:
    registers = _Mentions(function)
    for node in graph_of(function).nodes:
        run = _Run(node, registers)
        moved = set[int]()
        for load in filter(_may_be_lifted, run.places):
            guard = run.needed(written(load))
            if guard is None or guard == _ALWAYS or key_of(load.scope, guard.register[1]) != guard.register:
                continue
            above = run.above(load, guard.register)
            if above is None:
                continue
            for each in above:
                if each.start not in moved:
                    edits.insert_before(load, f"{each.text} ")
                    edits.replace(each, "")
                    moved.add(each.start)
            holds, fails = (f"@{sign}{guard.register[1]} " for sign in (("", "!") if guard.value else ("!", "")))
            edits.insert_before(load, holds)
            if not _is_of_variable(load):
                edits.insert_after(load, _thrown_away(load, fails))


def _thrown_away(load: Instruction, guard: str) -> str:
    """The load, into registers of its own."""
    target = load.operands[0]
    count = len(target.elements) if isinstance(target, Vector) else 1
    names = ", ".join(f"{_THROWN_AWAY}{number}" for number in range(count))
    bits = max(16, 8 * row_of(load).event(load).first.total_bytes // count)
    address = load.operands[1].text
    return f" {{ .reg .b{bits} {names}; {guard}{load.opcode} {f'{{{names}}}' if count > 1 else names}, {address}; }}"


def _read(instruction: Instruction) -> set[Key]:
    """All registers that occur, but for those that the instruction writes."""
    found = {key_of(instruction.scope, name) for operand in instruction.operands for name in names(operand)}
    guard = guard_of(instruction)
    return found - set(written(instruction)) | ({guard.register} if guard is not None else set())


class _Mentions:
    """The readers and the writers of the few registers that are asked for. Only instructions that name one have their operands read."""

    def __init__(self, function: Function) -> None:
        self._named = defaultdict[str, list[Instruction]](list)
        for instruction in function.instructions():
            for name in set(_NAME.findall(instruction.text)):
                self._named[name].append(instruction)
        self.uses = functools.cache(lambda key: [each for each in self._named[key[1]] if key in _read(each)])
        self.made = functools.cache(lambda key: [each for each in self._named[key[1]] if key in written(each)])


@dataclass
class _Run:
    """The instructions of one node, in order. Registers that are written twice are left alone."""

    node: BasicBlock
    registers: _Mentions
    places: dict[Instruction, int] = field(init=False)
    known: dict[Key, Need] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.places = {step.instruction: number for number, step in enumerate(self.node.steps)}

    def needed(self, keys: tuple[Key, ...]) -> Need:
        """The condition under which one of some registers is needed."""
        found: Need = None
        for key in keys:
            need = self._need(key)
            found = need if found is None or found == need else found if need is None else _ALWAYS
        return found

    def _need(self, key: Key) -> Need:
        if key not in self.known:
            self.known[key] = _ALWAYS  # of a value that depends on itself
            needs = [self._by(each, key) for each in self.registers.uses(key)] if len(self.registers.made(key)) == 1 else [_ALWAYS]
            one = {each for each in needs if each is not None}
            self.known[key] = _ALWAYS if len(one) > 1 else one.pop() if one else None
        return self.known[key]

    def _by(self, use: Instruction, key: Key) -> Need:
        """The condition under which an instruction needs a register."""
        if use.predicate is not None or not computes(use) or not self._is_before(key, use):
            return _ALWAYS
        need = self.needed(written(use))
        return need if need != _ALWAYS else self._chosen(use, key)

    def _is_before(self, key: Key, use: Instruction) -> bool:
        """Whether a register has its value before an instruction of this node, if it gets it in this node."""
        return use in self.places and all(self.places.get(each, -1) < self.places[use] for each in self.registers.made(key))

    def _chosen(self, use: Instruction, key: Key) -> Need:
        """The condition under which `selp`, or a logical operation, lets one of its operands decide."""
        operands = [key_of(use.scope, each.name) if isinstance(each, Register) else None for each in use.operands[1:]]
        if operands.count(key) != 1:
            return _ALWAYS
        place, value = operands.index(key), decides_with(use)
        other = operands[2] if chooses(use) else operands[1 - place] if value is not None else None
        if other is None or other == key or len(self.registers.made(other)) != 1 or not self._is_before(other, use):
            return _ALWAYS
        return Guard(other, place == 0 if value is None else value)

    def above(self, load: Instruction, condition: Key) -> list[Instruction] | None:
        """The instructions that have to move above a load, so that its condition is known there, in order; None if it cannot."""
        found, pending = set[Instruction](), [condition]
        while pending:
            key = pending.pop()
            late = [each for each in self.registers.made(key) if self.places.get(each, -1) >= self.places[load]]
            if late and (len(self.registers.made(key)) > 1 or late[0] is load or late[0].predicate is not None or not computes(late[0])):
                return None
            if late and late[0] not in found:
                if any(key_of(load.scope, name) != key_of(late[0].scope, name) for each in late[0].operands for name in names(each)):
                    return None
                found.add(late[0])
                pending += _read(late[0])
        return sorted(found, key=self.places.__getitem__)
