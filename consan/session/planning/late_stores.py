"""A text of a kernel in which stores come behind a later look at another word, where no `fence.sc` keeps them before it (R-MO2).

The memory model lets a load be performed before an earlier store of its thread to another place (ISA 8.9.5, 8.10: a release, an acquire and
`fence.acq_rel` order no store before a later load). The virtual machine performs both in turn. In this text a thread keeps the store, and
makes it right behind the look, or before whatever else might tell the difference:

    st.relaxed.gpu.global.u32 [%rd1], 1;         keeps %rd1
    ld.relaxed.gpu.global.u32 %r1, [%rd2];       ld.relaxed.gpu.global.u32 %r1, [%rd2]; st.relaxed.gpu.global.u32 [%rd1], 1;

So each run of it is a run that the kernel itself may have. Before the store the thread goes round in a loop: meanwhile others go on that a
schedule has held. A store of the bytes that the look reads is made before it. Stores, reductions and
fences between the two are kept, too, in their order; a fence stays in its place as well. No line of the text moves.

An atomic whose result is used, or that acquires, reads in its place and writes late, if it may be what sets the flag: only its thread
writes that word, so it finds then what it has read. Where it does not, the thread stores at address 0: that run shows nothing.

Not kept: other atomics whose result is used, stores in loops without a look, and of registers of 8 and 128 bits.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection
from dataclasses import field
from typing import Final

from consan.backends.cpu.engine.steered import HOLD
from consan.dataclass import dataclass
from consan.instrument.control_flow import graph_of
from consan.instrument.control_flow.places import instructions_of, places_reached
from consan.instrument.isa import is_noncoherent, row_of
from consan.instrument.ptx import Address, Block, Edits, Function, Instruction, Label, Module, Register, Underscore
from consan.instrument.rewriting.emit import register_bits

_NAME: Final = re.compile(r"[%$\w]+")
_WIDTHS: Final = (16, 32, 64)
_TEST: Final = ("%consan_hit", "%consan_now", "%consan_at", "%consan_look")
_SPLIT: Final = (4, 8)  # bytes of an atomic that is taken apart
_WRONG: Final = "%consan_wrong"
_LEFT, _ACTIVE = "%consan_left", "%consan_active"
_ROUNDS: Final = 2 * HOLD


@dataclass(frozen=True)
class LateStores:
    """The text, and the lines that now have accesses of other lines."""

    text: str
    lines: frozenset[int]


def late_stores(module: Module, lines: Collection[int], *, between_ctas: bool, looks: Collection[int] = ()) -> LateStores | None:
    """The text with stores behind looks, if the store or the look is in one of these lines; None if there are none.

    `between_ctas`: the threads are of two CTAs, so that a `fence.sc` of one CTA keeps nothing in order. `looks`: lines of looks at the flag
    of another thread, so that no atomic there sets the own one.
    """
    edits, changed = Edits(module), set[int]()
    for function in module.functions:
        if function.body is not None:
            found = _Function(function, between_ctas)
            found.choose(lines, looks)
            changed |= found.write(edits)
    return LateStores(edits.apply(), frozenset(changed)) if len(edits) else None


@dataclass
class _Function:
    function: Function
    between_ctas: bool
    kept: dict[Instruction, int] = field(default_factory=dict)  # the stores and fences that are kept, numbered in the order of the text
    ends: dict[Instruction, set[Instruction]] = field(default_factory=lambda: defaultdict(set))  # what is made there, at the latest

    def choose(self, lines: Collection[int], others: Collection[int]) -> None:
        """Find the stores that may come behind a look."""
        graph = graph_of(self.function)
        steps = instructions_of(graph)
        behind = {
            each: [steps[n][i] for n, i in places_reached(steps, graph.successors, ((number, at + 1),), self._stops)]
            for number, inside in enumerate(steps)
            for at, each in enumerate(inside)
            if self._is_kept(each) or (_splits(each) and each.line not in others)
        }
        looks = {
            each: set(filter(_is_look, reached)) for each, reached in behind.items() if _is_flag(each) and self._is_plain(each, reached)
        }
        wanted = {look for each, found in looks.items() for look in found if each.line in lines or any(one.line in lines for one in found)}
        flags = [each for each, found in looks.items() if found & wanted]
        chosen = {one for each in flags for one in (each, *filter(self._is_kept, behind[each]))}
        self.kept = {each: number for number, each in enumerate(sorted(chosen, key=lambda one: one.start))}
        for each in self.kept:
            for end in behind[each]:
                if self._stops(end) or end is each:
                    self.ends[end].add(each)

    def _is_plain(self, flag: Instruction, reached: list[Instruction]) -> bool:
        """Whether what comes behind a store can be kept, too, in the order of the text."""
        kept = [flag, *filter(self._is_kept, reached)]
        return flag not in reached and all(map(_may_be_kept, kept)) and kept == sorted(kept, key=lambda one: one.start)

    def _stops(self, instruction: Instruction) -> bool:
        return not (_is_private(instruction) or self._is_kept(instruction))

    def _is_kept(self, instruction: Instruction) -> bool:
        row = row_of(instruction)
        if row.is_fence:
            order = row.describe(instruction)
            return order.sem != "sc" or (self.between_ctas and order.is_of_cta)
        access = row.describe(instruction)
        writes = row.is_store or row.is_reduction or (row.is_atomic and not access.acquires and self._is_dead(instruction))
        return writes and row.is_ordinary and access.is_visible and not row.may_be_late

    def _is_dead(self, atomic: Instruction) -> bool:
        """Whether nothing uses what an atomic gives."""
        result = atomic.operands[0]
        return isinstance(result, Underscore) or (
            isinstance(result, Register) and _NAME.findall(self.function.text).count(result.name) == 1
        )

    # -- the text ----------------------------------------------------------------------------------------------------------

    def write(self, edits: Edits) -> set[int]:
        """Change the function; the lines that get accesses of others."""
        if not self.kept:
            return set()
        body = self.function.body
        assert body is not None
        first = next(each for each in body.statements if isinstance(each, (Instruction, Label, Block)))
        copies = {f"%consan_kept{number}_{at}": bits for number in self.kept.values() for at, bits in enumerate(self._bits(number))}
        copies |= {_seen(number): 8 * _bytes(each) for each, number in self.kept.items() if not self._is_kept(each)}
        pending = [_pending(number) for number in self.kept.values()]
        names = "".join(f" .reg .b{bits} {name};" for name, bits in copies.items())
        tests = f" .reg .pred {', '.join((*pending, *_TEST[:2], _WRONG))}; .reg .b64 {', '.join(_TEST[2:])}; .reg .b32 {_LEFT}, {_ACTIVE};"
        edits.insert_at(body.open + 1, tests + names)
        begin = "".join(f"setp.ne.u32 {each}, 0, 0; " for each in pending) + "".join(
            f"mov.b{bits} {name}, 0; " for name, bits in copies.items()
        )
        edits.insert_before(first, begin)
        for each, number in self.kept.items():
            _keep(each, number, edits, splits=not self._is_kept(each))
        for end, kept in self.ends.items():
            made = [(number, each) for each, number in self.kept.items() if each in kept]
            if _is_look(end):
                edits.insert_before(end, self._made_before(end, made))
                later = "".join(self._made(each, number, _pending(number)) for number, each in made)
                edits.insert_after(end, f" {_waiting([_pending(number) for number, _ in made], end.start)}{later}")
            else:
                edits.insert_before(end, "".join(self._made(each, number, _pending(number)) for number, each in made))
        return {end.line for end in self.ends}

    def _made(self, instruction: Instruction, number: int, condition: str) -> str:
        """Text that makes an access or fence that was kept, under a condition. An atomic must find what it has read in its place."""
        names = {name: f"%consan_kept{number}_{at}" for at, name in enumerate(_registers(instruction))}
        operands = _NAME.sub(lambda found: names.get(found[0], found[0]), _operands(instruction))
        made = f"@{condition} {instruction.opcode}{operands} "
        if not self._is_kept(instruction):
            found, bits = names[instruction.operands[0].text], 8 * _bytes(instruction)
            made += f"setp.ne.b{bits} {_WRONG}, {found}, {_seen(number)}; and.pred {_WRONG}, {_WRONG}, {condition}; "
            made += f"mov.b64 {_TEST[2]}, 0; @{_WRONG} st.global.b32 [{_TEST[2]}], {found if bits == 32 else _LEFT}; "
        return f"{made}@{condition} setp.ne.u32 {_pending(number)}, 0, 0; "

    def _made_before(self, look: Instruction, made: list[tuple[int, Instruction]]) -> str:
        """The same before a look, for all that was kept, if a store of it is one of the bytes that the look reads."""
        hit, now, at, own = _TEST
        size = _bytes(look)
        pieces = [f"setp.ne.u32 {hit}, 0, 0; ", _to_register(look, own, {})]
        for number, each in made:
            if not row_of(each).is_fence:
                names = {name: f"%consan_kept{number}_{place}" for place, name in enumerate(_registers(each))}
                pieces.append(_to_register(each, at, names))
                most = size + _bytes(each) - 1
                pieces.append(f"sub.s64 {at}, {at}, {own}; add.s64 {at}, {at}, {_bytes(each) - 1}; setp.lt.u64 {now}, {at}, {most}; ")
                pieces.append(f"and.pred {now}, {now}, {_pending(number)}; or.pred {hit}, {hit}, {now}; ")
        for number, each in made:
            pieces.append(f"and.pred {now}, {hit}, {_pending(number)}; {self._made(each, number, now)}")
        return "".join(pieces)

    def _bits(self, number: int) -> list[int]:
        kept = next(each for each, known in self.kept.items() if known == number)
        return [register_bits(name, kept.scope) for name in _registers(kept)]


def _is_flag(instruction: Instruction) -> bool:
    row = row_of(instruction)
    return (row.is_store or row.is_reduction or row.is_atomic) and row.describe(instruction).is_strong


def _splits(instruction: Instruction) -> bool:
    """Whether an atomic whose result is used may read in its place and write late."""
    row = row_of(instruction)
    if not row.is_atomic or not isinstance(result := instruction.operands[0], Register):
        return False
    access, bits = row.describe(instruction), register_bits(result.name, instruction.scope)
    return access.is_visible and access.total_bytes in _SPLIT and bits == 8 * access.total_bytes


def _is_look(instruction: Instruction) -> bool:
    row = row_of(instruction)
    if not (row.is_load or row.is_atomic) or not isinstance(_address(instruction), Address):
        return False
    access = row.describe(instruction)
    return access.is_strong and access.is_visible and not access.releases


def _is_private(instruction: Instruction) -> bool:
    """Whether an instruction touches no memory that others write, and orders nothing."""
    row = row_of(instruction)
    if row.is_load:
        return not row.describe(instruction).is_visible or is_noncoherent(instruction)
    return row.is_arithmetic or row.is_of_addresses or row.branches


def _may_be_kept(instruction: Instruction) -> bool:
    if row_of(instruction).is_fence:
        return True
    known = all(register_bits(name, instruction.scope) in _WIDTHS for name in _registers(instruction))
    return known and isinstance(_address(instruction), Address)


def _address(instruction: Instruction) -> object:
    return next((each for each in instruction.operands if isinstance(each, Address)), None)


def _operands(instruction: Instruction) -> str:
    return instruction.text.partition(instruction.opcode)[2]


def _registers(instruction: Instruction) -> list[str]:
    """The registers of the operands, each once."""
    return [name for name in dict.fromkeys(_NAME.findall(_operands(instruction))) if instruction.scope.is_register(name)]


def _seen(number: int) -> str:
    return f"%consan_seen{number}"


def _pending(number: int) -> str:
    return f"%consan_pending{number}"


def _keep(instruction: Instruction, number: int, edits: Edits, *, splits: bool) -> None:
    """In its place: keep the registers. A fence stays, and so does the read of an atomic that is taken apart."""
    guard = instruction.predicate
    condition = f"setp.eq.u32 {_pending(number)}, 0, 0;"
    if guard is not None:
        condition = f"{'not.pred' if guard.negated else 'mov.pred'} {_pending(number)}, {guard.register};"
    copies = (
        f"mov.b{register_bits(name, instruction.scope)} %consan_kept{number}_{at}, {name};"
        for at, name in enumerate(_registers(instruction))
    )
    text = " ".join((*copies, condition))
    if row_of(instruction).is_fence:
        edits.insert_before(instruction, f"{text} ")
    else:
        edits.replace(instruction, f"{text} {_read(instruction, number)}" if splits else text)


def _read(atomic: Instruction, number: int) -> str:
    """The read of an atomic alone."""
    access, result, address = row_of(atomic).describe(atomic), atomic.operands[0].text, _address(atomic)
    assert isinstance(address, Address)
    space = "" if access.is_generic else f".{access.qualified_space}"
    order = f"{'acquire' if access.acquires else 'relaxed'}.{access.scope}"
    bits = 8 * access.total_bytes
    return f"@{_pending(number)} ld.{order}{space}.b{bits} {result}, {address.text}; mov.b{bits} {_seen(number)}, {result};"


def _waiting(pending: list[str], place: int) -> str:
    """A loop for a thread that has kept something."""
    any_kept = f"mov.pred {_TEST[0]}, {pending[0]}; " + "".join(f"or.pred {_TEST[0]}, {_TEST[0]}, {each}; " for each in pending[1:])
    again, done = f"$consan_wait{place}", f"$consan_late{place}"
    count = f"activemask.b32 {_ACTIVE}; nanosleep.u32 0; sub.s32 {_LEFT}, {_LEFT}, 1; setp.ne.s32 {_TEST[0]}, {_LEFT}, 0;"
    count += f" @{_TEST[0]} bra {again};"
    return f"{any_kept}@!{_TEST[0]} bra {done}; mov.b32 {_LEFT}, {_ROUNDS}; {again}: {count} {done}: "


def _bytes(instruction: Instruction) -> int:
    return row_of(instruction).describe(instruction).total_bytes


def _to_register(instruction: Instruction, register: str, names: dict[str, str]) -> str:
    """The generic address of an access, in a register. `names`: registers that stand for others."""
    address = _address(instruction)
    assert isinstance(address, Address)
    base = address.base.text if not isinstance(address.base, Register) else names.get(address.base.name, address.base.name)
    narrow = isinstance(address.base, Register) and register_bits(address.base.name, instruction.scope) == 32
    text = f"cvt.u64.u32 {register}, {base}; " if narrow else f"mov.b64 {register}, {base}; "
    text += f"add.s64 {register}, {register}, {address.offset}; "
    return text + (f"cvta.shared.u64 {register}, {register}; " if row_of(instruction).describe(instruction).in_shared else "")
