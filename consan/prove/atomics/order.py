"""Which accesses of two CTAs words of global memory order, and what results of atomic operations say of each other.

A flag that is found set has been set before, by the one CTA that sets it first, or by operations that found it set: what comes before the
write of that CTA is ordered before what comes behind the reader (ISA, "Memory Consistency Model", "Release and Acquire Patterns", which
atomic operations in between continue). Of two CTAs that have taken one lock, one has freed it before the other one took it. Of two
additions to a counter, the one that found the smaller number came first. A number of rounds that is large enough comes behind these rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product
from typing import Final

from consan.dataclass import dataclass
from consan.prove.atomics.fences import WordFences
from consan.prove.atomics.first import FirstThread
from consan.prove.atomics.growing import Rounds
from consan.prove.atomics.published import Published
from consan.prove.atomics.words import SyncWord, WordUse, swaps, sync_words, words_alone
from consan.prove.numbers import times
from consan.prove.pairs import CTA, GRID, AccessPair, OverlapQuestions
from consan.prove.phases.warps import is_plain
from consan.prove.solver import Formula, both, either, opposite, z3
from consan.prove.step import StrongThreadAccess, SymbolicSteps, ThreadAccess

_SECONDS: Final = 2.0


@dataclass(frozen=True)
class WordResult:
    """A number that a thread has read in a word, and its address. `first`: the first thread of its CTA has read it. `known`: what is known
    of it where another thread makes an access.
    """

    seen: Formula
    place: Formula
    name: str
    acquires: bool
    first: bool
    read: StrongThreadAccess
    known: Formula


class WordOrder:
    """The words of one kernel. `accesses`: of a thread's life."""

    def __init__(
        self,
        accesses: Sequence[ThreadAccess],
        published: Published,
        rounds: Rounds,
        fences: WordFences,
        steps: SymbolicSteps,
        questions: OverlapQuestions,
    ) -> None:
        first = steps.first
        self._fences, self._rounds = fences, rounds
        questions.environment.symbols.shared.zeros |= words_alone(accesses).keys()
        self._published, self._first, self._questions, self._made = published, first, questions, steps.results
        self._symbols = questions.environment.symbols
        self._closures = dict[int, tuple[Formula, frozenset[str]]]()
        self._rules: dict[WordUse, Callable[[_Word, ThreadAccess, int, ThreadAccess, int], list[Formula]]] = {
            WordUse.FLAG: self._of_flag, WordUse.LOCK: self._of_lock, WordUse.COUNTER: self._of_counter,
            WordUse.ROUNDS: self._of_rounds,
        }  # fmt: skip
        self._words = [_Word(each, first, published, fences, questions) for each in sync_words(accesses, fences)]

    def unordered(self, pair: AccessPair) -> list[Formula]:
        """The condition under which no word orders a pair of two CTAs, and of results of two threads."""
        if pair.own or pair.of_lanes or any(pair.first.base == each.word.base for each in self._words):
            return []
        found = [each for word in self._words if word.word.use is WordUse.COUNTER for each in self._distinct(word, pair)]
        if pair.one_cta or not (is_plain(pair.first) and is_plain(pair.second)):
            return found
        for word in self._words:
            for one, other in (((pair.first, 1), (pair.second, 2)), ((pair.second, 2), (pair.first, 1))):
                found += self._rules[word.word.use](word, *one, *other)
        return found

    def _read(self, word: _Word, access: ThreadAccess) -> Iterator[WordResult]:
        """The numbers that were read in a word before an access: those that it follows from, and those of the first thread of its CTA."""
        for each in word.results:
            if self._knows(access, each):
                yield each
            else:
                for known in (self._published.since(access, each.read), self._rounds.since(access)) if each.first else ():
                    if each.name in self._symbols.closure([known]):
                        yield replace(each, known=known)

    def _knows(self, access: ThreadAccess, result: WordResult) -> bool:
        """Whether it follows from a result that a thread makes an access, or where."""
        return result.name in self._closure(access)

    def _closure(self, access: ThreadAccess) -> frozenset[str]:
        key = id(access)
        if key not in self._closures:
            self._closures[key] = access, frozenset(self._symbols.closure([access.path, access.offset.term]))
        return self._closures[key][1]

    def _not(self, parts: Sequence[tuple[Sequence[Formula], int]], how: Callable[..., Formula]) -> list[Formula]:
        """The opposite of a condition on formulas of two threads, and what is known of their variables."""
        exchanged = [self._questions.exchanged(formulas, thread, GRID) for formulas, thread in parts]
        known = [each for _, more in exchanged for each in more]
        return [*known, opposite(how(*(each for formulas, _ in exchanged for each in formulas)))]

    def _known(self, result: WordResult, thread: int) -> list[Formula]:
        """Facts on a number where a thread makes an access."""
        formulas, known = self._questions.exchanged([result.known], thread, GRID)
        return [*formulas, *known]

    def _of_flag(self, word: _Word, one: ThreadAccess, thread: int, other: ThreadAccess, its: int) -> list[Formula]:
        """One access comes before the write of the flag in its CTA, and the other one behind a read that finds the flag set."""
        if word.writes is None or not self._published.before(one, word.word.writer):
            return []
        found = list[Formula]()
        for result in self._read(word, other):
            if result.acquires:
                self._assume(f"the words that {word.name} leads to are 0 when the kernel begins", word)
                found += self._known(result, its)
                found += self._not(
                    [((word.writes, word.place), thread), ((result.place, result.seen), its)],
                    lambda writes, place, read, seen: both(writes, place == read, seen != 0),
                )
        return found

    def _of_rounds(self, word: _Word, one: ThreadAccess, thread: int, other: ThreadAccess, its: int) -> list[Formula]:
        """One access comes before the write of its round in its CTA, and the other one behind a read that finds no smaller number."""
        if (writes := word.writes) is None or not self._rounds.before(one, word.word.writer):
            return []
        found = list[Formula]()
        for result in self._read(word, other):
            if result.acquires:
                self._assume(f"the words that {word.name} leads to count from 0 to less than 2^31", word)
                (seen,), _ = self._questions.exchanged([result.seen], its, GRID)
                found += [*self._known(result, its), seen >= 0]
                found += self._not(
                    [((writes, word.place, word.stored), thread), ((result.place, result.seen), its)],
                    lambda writes, place, stored, read, seen: both(writes, place == read, seen >= stored),
                )
        return found

    def _of_lock(self, word: _Word, one: ThreadAccess, thread: int, other: ThreadAccess, its: int) -> list[Formula]:
        """Both accesses lie between taking and freeing the lock."""
        writer = word.word.writer
        if thread > its or not (word.is_lock and self._published.before(one, writer) and self._published.before(other, writer)):
            return []
        found = list[Formula]()
        for mine, theirs in product(self._read(word, one), self._read(word, other)):
            found += [*self._known(mine, thread), *self._known(theirs, its)]
            found += self._not(
                [((mine.place, mine.seen), thread), ((theirs.place, theirs.seen), its)],
                lambda place, seen, other_place, other_seen: both(place == other_place, seen == 0, other_seen == 0),
            )
        return found

    def _of_counter(self, word: _Word, one: ThreadAccess, thread: int, other: ThreadAccess, its: int) -> list[Formula]:
        """One access comes before the addition of its CTA, and the other one behind an operation that finds a larger number."""
        writer, mine = word.word.writer, word.added
        if not (self._fences.releases(writer) and self._first.is_the_first(writer.path) and self._published.before(one, writer)):
            return []
        found = list[Formula]()
        for result in self._read(word, other):
            if result.acquires:
                self._assume(f"the words that {word.name} leads to count from 0 to less than 2^31", word)
                last = result.seen - (0 if result.read is writer else 1)  # the number that the addition which it follows has found
                found += self._known(result, its)
                found += self._not(
                    [((mine.place, mine.seen), thread), ((result.place, last), its)],
                    lambda place, seen, other_place, other_seen: both(place == other_place, seen <= other_seen),
                )
                found += [*self._counts(mine.seen, thread), *self._counts(last, its, least=-1)]
        return found

    def _counts(self, result: Formula, thread: int, least: int = 0) -> list[Formula]:
        """An addition has found less than there are CTAs: one thread of each adds 1. `least`: -1, if there was perhaps none."""
        (seen,), known = self._questions.exchanged([result], thread, GRID)
        x, y, z = self._questions.environment.grid
        return [*known, seen >= least, seen < times(times(x, y), z).term]

    def _distinct(self, word: _Word, pair: AccessPair) -> Iterator[Formula]:
        """Two threads that have added to one word have not found one number."""
        for mine, theirs in product(self._results(word, pair.first, pair), self._results(word, pair.second, pair)):
            (place, seen), (other_place, other_seen) = (
                self._questions.exchanged(each, thread, pair.shared)[0] for each, thread in ((mine, 1), (theirs, 2))
            )
            self._assume(f"the words that {word.name} leads to count to less than 2^31", word)
            yield z3.Implies(place == other_place, seen != other_seen)

    def _results(self, word: _Word, access: ThreadAccess, pair: AccessPair) -> list[tuple[Formula, Formula]]:
        """The addresses and results of additions that an access follows from: those of its own thread, and of the first one of its CTA."""
        added = (each for each in word.results if each.read is word.word.writer)
        found = [(each.place, each.seen) for each in added if self._knows(access, each) and not (pair.one_cta and each.first)]
        if pair.one_cta:  # in a walk from a barrier to the next ones, the same addition has another variable
            start, its = word.word.writer.instruction.start, self._closure(access)
            found += [(place, self._symbols.variables[name]) for name, (each, place) in self._made.items() if each == start and name in its]
        return found

    def _assume(self, premise: str, word: _Word) -> None:
        self._symbols.shared.premises[premise] = None


class _Word:
    """One word, with what is asked of it once."""

    def __init__(self, word: SyncWord, first: FirstThread, published: Published, fences: WordFences, questions: OverlapQuestions) -> None:
        self.word, self._first, self._published, self._fences, self._questions = word, first, published, fences, questions
        self._symbols = questions.environment.symbols
        kind, begin = word.base
        place, _, offset = begin.partition("+")
        self.name = f"parameter {int(place) + 1}" + (f" at byte {offset}" if offset != "0" else "") if kind == "param" else place

    @cached_property
    def results(self) -> list[WordResult]:
        """The numbers that the thread that reads knows, and that its CTA knows of the first thread."""
        found = list[WordResult]()
        for each in self.word.readers:
            assert each.seen is not None
            for first in (False, True):
                seen, place = ((self._first.of(term) if first else term) for term in (each.seen.term, each.offset.term))
                found.append(WordResult(seen, place, str(seen), self._fences.acquires(each), first, each, z3.BoolVal(True)))
        return found

    @cached_property
    def added(self) -> WordResult:
        """The number that the first thread of a CTA adds to, whether or not it looks at it."""
        writer = self.word.writer
        known = next((each for each in self.results if each.first and each.read is writer), None)
        seen = self._symbols.variable("u", "added")
        return known or WordResult(seen, self._first.of(writer.offset.term), str(seen), False, True, writer, z3.BoolVal(True))

    @cached_property
    def _offset(self) -> Formula | None:
        """The address of the write, as it follows from numbers of the thread and the launch; None: it does not, or that is not seen."""
        writer = self.word.writer
        whole = writer.offset.term
        for each in (whole, *_without_choices(whole)):
            if self._is_known(each) and (each is whole or self._questions.always(writer, each == whole, _SECONDS)):
                return each
        return None

    @property
    def place(self) -> Formula:
        """The address at which the first thread of a CTA writes."""
        return self._first.of(self._offset)

    @cached_property
    def writes(self) -> Formula | None:
        """The condition under which the first thread of a CTA may be the first one to set the flag: of one CTA for each word, or None."""
        return self._writes()

    def _writes(self) -> Formula | None:
        writer, in_rounds = self.word.writer, self.word.use is WordUse.ROUNDS
        known = self._counts_rounds() if in_rounds else self._published.is_once(writer)
        if not known or self._offset is None:
            return None
        parts = [self._as_known(writer.path, {})]
        compared = writer.given[0]
        if swaps(writer) and compared is not None and self._is_known(compared.term):
            parts.append(compared.term == 0)
        path = both(*parts)
        self._may_write = replace(writer, path=path, offset=replace(writer.offset, term=self._offset))
        if self._questions.model(AccessPair(self._may_write, self._may_write, GRID), _SECONDS) is not False:
            return None
        return self._first.of(path)

    @property
    def stored(self) -> Formula:
        """The number that the CTA stores in a round."""
        value = self.word.writer.given[0]
        assert value is not None
        return value.term

    def _counts_rounds(self) -> bool:
        """Whether all threads of a CTA store one number in a round, which is not 0, and no other instruction writes the word."""
        writer, symbols = self.word.writer, self._symbols
        names = symbols.closure([z3.substitute(self.stored, (writer.rounds[0], z3.IntVal(0)))])
        pairs = [AccessPair(writer, each, *how) for each in self.word.others for how in ((GRID,), (CTA,), (CTA, True))]
        return (
            all(name[0] in "pc" for name in names)
            and self._questions.always(writer, self.stored > 0, _SECONDS)
            and all(self._questions.model(each, _SECONDS) is False for each in pairs)
        )

    def _as_known(self, path: Formula, found: dict[int, Formula]) -> Formula:
        """A weaker condition, on numbers of the thread and the launch alone. `found`: those of its parts."""
        key = path.get_id()
        if key not in found:
            joined = both if z3.is_and(path) else either if z3.is_or(path) else None
            if self._is_known(path):
                found[key] = path
            elif joined is None:
                found[key] = z3.BoolVal(True)
            else:
                found[key] = joined(*(self._as_known(each, found) for each in path.children()))
        return found[key]

    def _is_known(self, term: Formula) -> bool:
        """Whether a term follows from numbers of the thread and the launch alone."""
        symbols = self._symbols
        own = {str(each.term) for each in self._questions.environment.tid}
        return all(name[0] in "pc" or name in own or name in symbols.quotients for name in symbols.closure([term]))

    @cached_property
    def is_lock(self) -> bool:
        """Whether the thread that frees it has taken it, and frees it once."""
        writer = self.word.writer
        return self._published.is_once(writer) and any(self._is_taken(writer, each) for each in self.results)

    def _is_taken(self, writer: ThreadAccess, result: WordResult) -> bool:
        taken = both(result.seen == 0, result.place == writer.offset.term)
        if result.first and not self._first.is_the_first(writer.path):
            return False
        return self._questions.always(writer, taken, _SECONDS)


def _without_choices(term: Formula) -> Iterator[Formula]:
    """A term with one side of the choices in it, then with the other one."""
    for side in (1, 2):
        found = term
        while (each := _choice_in(found)) is not None:
            found = z3.substitute(found, (each, each.arg(side)))
        yield z3.simplify(found)


def _choice_in(term: Formula) -> Formula | None:
    pending = [term]
    while pending:
        each = pending.pop()
        if z3.is_app_of(each, z3.Z3_OP_ITE):
            return each
        pending += each.children()
    return None
