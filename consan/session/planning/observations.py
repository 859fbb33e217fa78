"""Whether what the threads of a kernel do may depend on the schedule.

A schedule can only matter through what a thread observes of others: whether a phase is complete, what an atomic or a strong load finds, who
is active, what a clock says, and what an access reads that races. If no order, branch, address or guard follows from such an observation,
then the threads of each schedule execute the same, with the same order between them, and what was found in one schedule holds for all.

So the answer "it cannot" is given only for instructions that are known to be independent of the schedule (isa/observing.py). An operation
on an mbarrier is always an observation: which phase it meets depends on who was first. A strong load or an atomic is one in a kernel with
fences, because then it may order accesses; in other kernels only its value counts. Where nobody reads that and it acquires
nothing itself, the thread learns nothing (R-GM8), as by a `red`.

A slice of the text follows the values (record/analyses/value_dependence.py): a yes may be wrong, a no is certain. It rests on races being
found: the caller gives the lines of the accesses that race, and does not ask where something was not checked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from consan.dataclass import dataclass
from consan.instrument.control_flow import keys_read, read, written
from consan.instrument.isa import Row, lookup, observing
from consan.instrument.ptx import Immediate, Instruction, Module
from consan.instrument.record.analyses.value_dependence import Start, value_follows


@dataclass(frozen=True)
class Observation:
    """An instruction whose result may depend on the schedule. `orders`: what it observes may order accesses of two threads."""

    instruction: Instruction
    orders: bool


def observations(module: Module, names: Collection[str], threads: int) -> list[Observation]:
    """The observations in functions of a module. `threads`: of a CTA; a barrier of so many is one of all."""
    known = {each.name for each in module.functions if each.body is not None}
    rows = _rows(module, names)
    orders = any(observing.orders_others(*each) for each in rows)
    learns = _learning(rows)
    alike = len({observing.update_of(each, row) for each, row in rows if row is not None and row.is_update}) <= 1
    found: list[Observation] = []
    for instruction, row in rows:
        if row is None or not observing.is_steady(instruction, row, known, of_all=_is_of_all(instruction, row, threads)):
            found.append(Observation(instruction, orders=True))
        elif instruction.start in learns or (row.is_update and not (alike and observing.commutes(instruction, row))):
            found.append(Observation(instruction, orders and instruction.start in learns))
        elif observing.gives_who_is_there(instruction) or _reads_system(instruction):
            found.append(Observation(instruction, orders=False))
    return found


def _learning(rows: list[tuple[Instruction, Row | None]]) -> set[int]:
    """The starts of strong reads by which a thread learns something: it reads the value, or the read acquires. All, if a row is missing."""
    strong = {each.start: (each, row) for each, row in rows if row is not None and observing.observes_strongly(each, row)}
    if any(row is None for _, row in rows):
        return set(strong)
    used = {key for each, _ in rows for key in keys_read(each)}
    return {start for start, (each, row) in strong.items() if "acquire" in row.event(each).orders or not used.isdisjoint(written(each))}


def leaves_the_same(module: Module, names: Collection[str], threads: int) -> bool:
    """Whether functions of a module leave the same in memory in each schedule, if no accesses race."""
    strong = (row is not None and observing.writes_strongly(instruction, row) for instruction, row in _rows(module, names))
    return not observations(module, names, threads) and not any(strong)


def _rows(module: Module, names: Collection[str]) -> list[tuple[Instruction, Row | None]]:
    functions = (each for each in module.functions if each.body is not None and each.name in names)
    return [(each, lookup(each.parts)) for function in functions for each in function.instructions()]


def depends_on_schedule(module: Module, found: Iterable[Observation], racing: Iterable[int]) -> Instruction | None:
    """An observation from which an order, a branch, an address or a guard may follow: the first that gives a value. None: from none.

    `racing`: lines of accesses that race.
    """
    known, lines = list(found), set(racing)
    ordering = [each.instruction for each in known if each.orders]
    if ordering:
        return next(filter(observing.gives_a_value, ordering), ordering[0])
    functions = (each for each in module.functions if each.body is not None)
    raced = (each for function in functions if lines for each in function.instructions() if each.line in lines)
    starts = [Start(each, memory=_writes(each)) for each in (*(each.instruction for each in known), *raced)]
    return starts[0].instruction if starts and value_follows(module, starts) else None


def _writes(instruction: Instruction) -> bool:
    row = lookup(instruction.parts)
    return row is None or row.writes


def _is_of_all(instruction: Instruction, row: Row, threads: int) -> bool:
    """Whether an instruction has no count of threads, or that of all."""
    if not row.is_cta_barrier:
        return True
    counts = [each for role, each in zip(row.roles(instruction), instruction.operands, strict=True) if role == "count"]
    return all(isinstance(each, Immediate) and int(each.value) == threads for each in counts)


def _reads_system(instruction: Instruction) -> bool:
    special = (name for name in read(instruction) if name.startswith("%") and not instruction.scope.is_register(name))
    return any(map(observing.is_of_system, special))
