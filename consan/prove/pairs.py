"""Whether two threads may access the same bytes while nothing orders them: one question to the solver for each pair of accesses.

Both threads have the variables of their accesses, but for those that they share: the parameters and the size of the grid, and within a CTA
its number and what is uniform between two barriers. Accesses of one width meet at equal addresses only, because addresses are aligned (ISA
"Addresses as Operands").

One lane gives the address of a row of `ldmatrix` or `stmatrix`, and others have its elements (SEMANTICS.md, R-ROW). An access of one of
these lanes before or behind the instruction is in program order with it, whichever lane gave the address.

Facts on products of unknowns help a solver of linear formulas with the usual questions: rows of a matrix do not overlap. For whole numbers
a < b and y >= 0: a * y + y <= b * y. Two elements `row * n + column` with `column < n` are in one row then. Each fact holds for all
numbers, so none can make a wrong "no".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any, Final

from consan.dataclass import dataclass
from consan.instrument.effects.flags import MatrixRow
from consan.instrument.isa import row_of
from consan.prove.environment import Environment
from consan.prove.loops.listed import ListedPlaces, few_rounds, places_of
from consan.prove.solver import Formula, ask, both, either, opposite, z3
from consan.prove.step import ThreadAccess
from consan.prove.tables import WARP, Masks, SplitAddress, ThreadTables, checks_of, meet

# The kinds of variables that two threads share (numbers.py): of one CTA between two barriers, of one CTA at any time, of two CTAs.
INTERVAL: Final = "pcu"
CTA: Final = "pc"
GRID: Final = "p"
_SECONDS: Final = 0.5  # of a question about rounds
_ROWS: Final = 8  # of a matrix, each of four words
_MOST_PRODUCTS: Final = 8  # with one factor, that are compared


@dataclass(frozen=True, eq=False)
class AccessPair:
    """Two accesses that may meet. `shared`: the variables that both threads share. `own`: one thread makes both, the second one later."""

    first: ThreadAccess
    second: ThreadAccess
    shared: str
    own: bool = False
    in_warps: bool = False  # threads of one warp make them in order
    one_warp: bool = False  # only threads of one warp are compared
    later: bool = False  # the second one is in a later interval
    alike: Masks | None = None  # two threads whose numbers differ so do not race: both store one value

    @property
    def one_cta(self) -> bool:
        """Whether both threads are of one CTA."""
        return self.shared != GRID

    @property
    def of_lanes(self) -> bool:
        """Whether a thread and itself may race: other lanes access its bytes, too. One instruction gives each lane its part of a row."""
        return (self.first.own or self.second.own) and self.first.place != self.second.place

    def may_race(self) -> bool:
        """Whether they are a race if they meet: one writes, and not both are strong operations that reach each other."""
        one, other = self.first, self.second
        if not (one.writes or other.writes):
            return False
        reach = ("cta", "cluster", "gpu", "sys") if self.one_cta else ("gpu", "sys")
        alike = (one.nbytes, one.element) == (other.nbytes, other.element)  # morally strong: they overlap completely (ISA 8.7.1)
        return not (one.strong in reach and other.strong in reach and alike)


class OverlapQuestions:
    """Asks whether pairs may meet. `assumed`: what the user says of the launch."""

    def __init__(self, environment: Environment, assumed: Sequence[Formula]) -> None:
        self.environment, self._symbols, self._assumed = environment, environment.symbols, list(assumed)
        self._renamed: dict[tuple[int, int, str], list[Formula]] = {}
        self._of_threads: dict[tuple[int, int, str], tuple[Formula, Formula]] = {}
        self.tables, self._splits = ThreadTables(environment), dict[int, SplitAddress]()
        self._places = dict[int, tuple[ThreadAccess, ListedPlaces | None]]()
        self.unordered: Callable[[AccessPair], list[Formula]] = lambda _: []  # what holds where phases do not order a pair
        self.together: Callable[[int], bool] = lambda _: False  # whether all lanes of a warp come to a node equally often
        self._numbers = [each.term for each in (*environment.tid, *environment.cta) if each.constant is None]

    def meet(self, pair: AccessPair) -> list[Formula]:
        """The formulas that hold where two threads make a pair at the same bytes, and nothing orders it."""
        one, other = self._of(pair.first, 1, pair.shared), self._of(pair.second, 2, pair.shared)
        if pair.one_cta and not pair.own and are_shared(pair.first, pair.second):
            distinct = self._other_performer(pair, one[0], other[0])
        else:
            distinct = self._one_thread(pair) if pair.own else [self._other_thread(pair)] if pair.one_cta else [self._other_cta()]
        distinct += [self._unlike(pair, pair.alike)] if pair.alike is not None else []
        distinct += [self._other_warp()] if pair.in_warps else []
        distinct += [opposite(self._other_warp())] if pair.one_warp else []
        met = _meet(one[0], pair.first.nbytes, other[0], pair.second.nbytes, aligned=pair.first.is_aligned and pair.second.is_aligned)
        return [*self._assumed_here(), *one[1:], *other[1:], *distinct, met, *self.unordered(pair)]

    def model(self, pair: AccessPair, seconds: float, more: Sequence[Formula] = ()) -> Any:
        """Values with which two threads meet; False: there are none; None: the solver gave up."""
        if _are_disjoint(pair) or (pair.one_cta and self._never_meet(pair, seconds)):
            return False
        asked = [*self.meet(pair), *more]
        return ask([*asked, *facts(asked)], seconds)

    def other_places(self, pair: AccessPair) -> Formula:
        """Whether two threads have other places in their blocks: then most programs store other values."""
        return self._other_thread(pair)

    def _never_meet(self, pair: AccessPair, seconds: float) -> bool:
        """Whether the numbers of the threads keep two accesses apart, or the other terms of their addresses."""
        one, other = (self._split(each) for each in (pair.first, pair.second))
        names = self._symbols.closure([term for term, _ in one.rest.values()])
        if one.rest == other.rest and all(name[0] in pair.shared for name in names):
            how = {"same": (pair.own or pair.of_lanes) and not pair.in_warps, "others": not pair.own, "warps": pair.in_warps}
            alike = None if pair.first.rounds else pair.alike
            return not meet(one, pair.first.nbytes, other, pair.second.nbytes, alike=alike, **how)
        if one.ends is None or other.ends is None or self._never_meet_as_listed(pair):
            return True
        asked, places = list(self._assumed_here()), []
        for thread, each, (low, high), access in ((1, one, one.ends, pair.first), (2, other, other.ends, pair.second)):
            offset, *known = self._exchanged([each.terms, access.path], thread, pair.shared)
            number = z3.Int(f"table'{thread}")
            asked += [*known, number >= low, number <= high]
            places.append(offset + number)
        aligned = pair.first.is_aligned and pair.second.is_aligned
        asked.append(_meet(places[0], pair.first.nbytes, places[1], pair.second.nbytes, aligned=aligned))
        return ask(asked, seconds / 4) is False

    def _never_meet_as_listed(self, pair: AccessPair) -> bool:
        """Whether the places of each thread in each round keep two accesses in loops apart."""
        if pair.own or pair.one_warp or not (pair.first.rounds or pair.second.rounds):
            return False
        one, other = (self._listed(each) for each in (pair.first, pair.second))
        return one is not None and other is not None and one.meet(other, same=pair.of_lanes, warps=pair.in_warps) is False

    def _listed(self, access: ThreadAccess) -> ListedPlaces | None:
        """The places of an access in few rounds; None: they are not known."""
        if id(access) not in self._places:
            rounds = few_rounds(access, lambda condition: self.always(access, condition, _SECONDS))
            self._places[id(access)] = access, None if rounds is None else places_of(access, self.tables, rounds)
        return self._places[id(access)][1]

    def _split(self, access: ThreadAccess) -> SplitAddress:
        if id(access) not in self._splits:
            self._splits[id(access)] = self.tables.split(access)
        return self._splits[id(access)]

    def happens(self, access: ThreadAccess, seconds: float) -> bool:
        """Whether an access may happen, would but for what the user says, or cannot whatever is assumed. Else there is nothing to prove."""
        known, said = self._of(access, 1)[1:], list(self._assumed_here())
        if ask([*said, *known], seconds) is not False or self._is_dead(access, seconds):
            return True
        return bool(self._assumed) and ask(said, seconds) is not False and ask([*said[len(self._assumed) :], *known], seconds) is not False

    def _is_dead(self, access: ThreadAccess, seconds: float) -> bool:
        """Whether no thread makes an access, whatever overflows."""
        names = self._symbols.closure([access.path, *self._numbers])
        known = [fact for name in names if name not in self._symbols.assumed for fact in self._symbols.facts[name]]
        return ask([access.path, *known], seconds) is False

    def follows(self, access: ThreadAccess, path: Formula, seconds: float, more: Sequence[Formula] = ()) -> bool:
        """Whether a thread that makes an access may come to a place behind it under a condition. `more`: of its number 2."""
        asked = [*self._assumed_here(), *self._of(access, 1, INTERVAL)[1:], *self._exchanged([path], 2, INTERVAL), *self._same_thread()]
        return ask([*asked, *more, *facts([*asked, *more])], seconds) is not False

    def reach(self, one: list[Formula], other: list[Formula], distinct: Sequence[Formula], more: Sequence[Formula], seconds: float) -> bool:
        """Whether two threads of a CTA may be under some conditions each. `more`: of the same launch, with the threads' numbers 1 and 2."""
        asked = [*self._assumed_here(), *self._exchanged(one, 1, CTA), *self._exchanged(other, 2, CTA), *distinct, *more]
        return ask([*asked, *facts(asked)], seconds) is not False

    def numbered(self, thread: int, number: int) -> list[Formula]:
        """The condition under which a thread of a question is the one at a place in the block."""
        found, left = [], thread
        for each, size in zip(self.environment.tid, self.environment.block, strict=True):
            if each.constant is None:
                found.append(_of_thread(each.term, number) == left % size)
            left //= size
        return found

    def stays(self, access: ThreadAccess, nbytes: int, seconds: float) -> bool:
        """Whether an access stays within the first bytes of its variable."""
        low, high = access.offset.range
        if low >= 0 and high + access.nbytes <= nbytes:
            return True
        if access.rounds and (places := self._listed(access)) is not None and places.stay(nbytes):
            return True
        address, *known = self._of(access, 1)
        return ask([*self._assumed_here(), *known, either(address < 0, address + access.nbytes > nbytes)], seconds) is False

    def variables(self, accesses: Sequence[ThreadAccess]) -> list[str]:
        """The variables that some accesses follow from."""
        return self._symbols.closure([term for each in accesses for term in (each.path, each.offset.term)])

    def _assumed_here(self) -> Iterator[Formula]:
        yield from self._assumed
        for name in self._symbols.closure([*self._assumed, *(each.term for each in self.environment.grid)]):
            yield from self._symbols.facts[name]

    def _of(self, access: ThreadAccess, thread: int, shared: str = GRID) -> list[Formula]:
        """The address of an access of a thread, its condition, and what is known of the variables."""
        key = id(access), thread, shared
        if key not in self._renamed:
            self._renamed[key] = self._exchanged([access.offset.term, access.path], thread, shared)
        return self._renamed[key]

    def exchanged(self, formulas: Sequence[Formula], thread: int, shared: str) -> tuple[list[Formula], list[Formula]]:
        """Some formulas of a thread, and what is known of their variables."""
        found = self._exchanged(list(formulas), thread, shared)
        return found[: len(formulas)], found[len(formulas) :]

    def always(self, access: ThreadAccess, condition: Formula, seconds: float) -> bool:
        """Whether a condition holds wherever a thread makes an access."""
        asked = [*self._assumed_here(), *self._exchanged([access.path, opposite(condition)], 1, GRID)]
        return ask([*asked, *facts(asked)], seconds) is False

    def _exchanged(self, formulas: list[Formula], thread: int, shared: str) -> list[Formula]:
        """Some formulas of a thread, and what is known of their variables."""
        names = self._symbols.closure([*formulas, *self._numbers])
        known = [fact for name in names for fact in self._symbols.facts[name]]
        return [self._of_one(each, thread, shared) for each in (*formulas, *known)]

    def _of_one(self, formula: Formula, thread: int, shared: str) -> Formula:
        """A formula with the variables of a thread. Most are facts, which many questions share."""
        key = formula.get_id(), thread, shared
        if key not in self._of_threads:
            own = [self._symbols.variables[name] for name in sorted(self._symbols.free(formula)) if name[0] not in shared]
            exchanged = z3.substitute(formula, *((each, _of_thread(each, thread)) for each in own)) if own else formula
            self._of_threads[key] = formula, exchanged
        return self._of_threads[key][1]

    def _same_thread(self) -> list[Formula]:
        return [_of_thread(each.term, 1) == _of_thread(each.term, 2) for each in self.environment.tid if each.constant is None]

    def _one_thread(self, pair: AccessPair) -> list[Formula]:
        """One thread makes both accesses: the second one in no earlier iteration, and not the first one itself."""
        one, other = pair.first.rounds, pair.second.rounds
        later = [_of_thread(one[0], 1) <= _of_thread(other[0], 2)] if one and other and one[0].eq(other[0]) else []
        if pair.first.place == pair.second.place and not pair.later:
            later.append(either(*(_of_thread(each, 1) != _of_thread(each, 2) for each in one)))
        return [*self._same_thread(), *later]

    def _other_thread(self, pair: AccessPair) -> Formula:
        if pair.of_lanes:
            return z3.BoolVal(True)
        return either(*(_of_thread(each.term, 1) != _of_thread(each.term, 2) for each in self.environment.tid if each.constant is None))

    def _unlike(self, pair: AccessPair, alike: Masks) -> Formula:
        """Whether no mask takes one thread of a pair to the other one, or they are in different rounds."""
        numbers, bits = (self._thread(1), self._thread(2)), range(len(alike).bit_length() - 1)
        checks = [
            sum(((number / z3.IntVal(1 << bit)) % 2 for bit in bits if check >> bit & 1), z3.IntVal(0)) % 2
            for check in checks_of(alike)
            for number in numbers
        ]
        rounds = [_of_thread(each, 1) != _of_thread(each, 2) for each in pair.first.rounds]
        return either(*(one != other for one, other in zip(checks[::2], checks[1::2], strict=True)), *rounds)

    def _other_performer(self, pair: AccessPair, one: Formula, other: Formula) -> list[Formula]:
        """Two threads access one byte, or two lanes give it by one instruction that is executed once. `one`, `other`: the addresses."""
        byte, given = z3.Int("byte"), zip((pair.first, pair.second), (one, other), (1, 2), strict=True)
        inside = [both(byte >= at, byte < at + access.nbytes) for access, at, _ in given]
        first, second = performer(pair.first, self._thread(1), byte - one), performer(pair.second, self._thread(2), byte - other)
        once = [z3.BoolVal(pair.first.place == pair.second.place), self._thread(1) != self._thread(2)]
        if self.together(pair.first.place[0]):
            once += [_of_thread(each, 1) == _of_thread(each, 2) for each in pair.first.rounds]
        return [*inside, either(first != second, both(*once))]

    def _other_warp(self) -> Formula:
        return self._warp(1) != self._warp(2)

    def _warp(self, number: int) -> Formula:
        """The warp of a thread of a question."""
        return self._thread(number) / z3.IntVal(WARP)

    def _thread(self, number: int) -> Formula:
        """A thread of a question: threads are numbered along x first."""
        linear, stride = z3.IntVal(0), 1
        for each, size in zip(self.environment.tid, self.environment.block, strict=True):
            if each.constant is None:
                linear += stride * _of_thread(each.term, number)
            stride *= size
        return linear

    def _other_cta(self) -> Formula:
        return either(*(_of_thread(each.term, 1) != _of_thread(each.term, 2) for each in self.environment.cta if each.constant is None))


def _of_thread(variable: Formula, thread: int) -> Formula:
    """A thread's own variable."""
    name = f"{variable}'{thread}"
    return z3.Bool(name) if z3.is_bool(variable) else z3.Int(name)


def _meet(one: Formula, size: int, other: Formula, other_size: int, *, aligned: bool) -> Formula:
    return one == other if aligned and size == other_size else both(one < other + other_size, other < one + size)


def sharing(access: ThreadAccess) -> MatrixRow:
    """How lanes share the bytes of an access."""
    row = row_of(access.instruction)
    if not row.is_matrix_access:
        return MatrixRow.NOBODY
    made = next((row.attributes(each, access.instruction) for each in row.makes if "row" in each.computed), {})
    return MatrixRow(made.get("row", MatrixRow.NOBODY))


def are_shared(one: ThreadAccess, other: ThreadAccess) -> bool:
    """Whether one of two accesses is a row of known lanes, and the other one such a row or of the executing thread alone."""
    known = [sharing(each) != MatrixRow.NOBODY for each in (one, other)]
    return any(known) and all(row or not (each.own or each.is_copy) for row, each in zip(known, (one, other), strict=True))


def performer(access: ThreadAccess, thread: Formula, distance: Formula) -> Formula:
    """The thread that accesses the byte so far behind the first one. `thread`: the number of the one that gives the address."""
    how = sharing(access)
    if how is MatrixRow.NOBODY:
        return thread
    row = thread % _ROWS
    lane = 4 * row + distance / z3.IntVal(4) if how is MatrixRow.WORDS else 4 * (distance / z3.IntVal(2)) + row / z3.IntVal(2)
    return thread - thread % WARP + lane


def _are_disjoint(pair: AccessPair) -> bool:
    one, other = pair.first.offset.range, pair.second.offset.range
    return one[0] >= other[1] + pair.second.nbytes or other[0] >= one[1] + pair.first.nbytes


def facts(formulas: Iterable[Formula]) -> list[Formula]:
    """Facts about the products in some formulas."""
    groups: dict[int, tuple[Formula, dict[int, tuple[Formula, Formula]]]] = {}
    for product in _products(formulas):
        factors = product.children()
        for place, factor in enumerate(factors):
            if not z3.is_int_value(factor):
                rest = factors[:place] + factors[place + 1 :]
                other = rest[0] if len(rest) == 1 else z3.Product(*rest)
                groups.setdefault(factor.get_id(), (factor, {0: (z3.IntVal(0), z3.IntVal(0))}))[1][product.get_id()] = other, product
    found: list[Formula] = []
    for factor, products in groups.values():
        for one, other in combinations(list(products.values())[:_MOST_PRODUCTS], 2):
            found += _ordered(factor, *one, *other)
            found += _ordered(factor, *other, *one)
    return found


def _products(formulas: Iterable[Formula]) -> Iterator[Formula]:
    """The products of two unknowns, each once."""
    pending, seen = list(formulas), set[int]()
    while pending:
        each = pending.pop()
        if each.get_id() not in seen:
            seen.add(each.get_id())
            pending += each.children()
            if z3.is_mul(each) and sum(not z3.is_int_value(factor) for factor in each.children()) > 1:
                yield each


def _ordered(factor: Formula, less: Formula, low: Formula, more: Formula, high: Formula) -> Iterator[Formula]:
    yield z3.Implies(z3.And(less < more, factor >= 0), low + factor <= high)
    yield z3.Implies(z3.And(less < more, factor <= 0), low + factor >= high)
