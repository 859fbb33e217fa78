"""Stores of several threads of a CTA to one place: which of them store one value (consan/prove/values)."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType

import numpy as np
import pytest

pytest.importorskip("z3", reason="the solver is in the extra `prove`")

from planted import plant
from proof_cases import PROVEN, RACES, answer, kernel
from value_cases import DIFFER, ROUNDED, SAME, value_program

from consan.instrument.isa import row_of
from consan.prove import pairs, tables
from consan.prove.environment import Environment
from consan.prove.kernel import kernel_of
from consan.prove.launched.conditions import STAYS, LaunchConditions, conditions_of
from consan.prove.loads import settled
from consan.prove.loads.settled import settled_loads
from consan.prove.numbers import Symbols
from consan.prove.proof import MEET
from consan.prove.values import alike, by_many
from consan.prove.values.alike import AlikeThreads
from consan.prove.values.by_many import ONE_SUM, ONE_VALUE


@pytest.mark.parametrize("body", SAME.values(), ids=SAME)
def test_one_value_of_several_threads_is_a_note(body: str) -> None:
    found = answer(body, notes=True)
    assert (found.answer, {each.why for each in found.alike}) == ("proven", {ONE_VALUE})
    assert answer(body).answer == "unknown"


@pytest.mark.parametrize("body", ROUNDED.values(), ids=ROUNDED)
def test_a_sum_that_threads_round_in_their_own_ways_is_named(body: str) -> None:
    found = answer(body, notes=True)
    assert (found.answer, {each.why for each in found.alike}) == ("proven", {ONE_SUM})


@pytest.mark.parametrize("body", DIFFER.values(), ids=DIFFER)
def test_several_values_are_not_proven(body: str) -> None:
    found = answer(body, notes=True)
    assert found.answer == "unknown"
    assert MEET in {each.why for each in found.reasons}


def _differing(seeds: Iterable[int]) -> tuple[list[int], int]:
    """The random programs in which threads differ that are said to store one value, and how many masks of others were said."""
    wrong, said = list[int](), 0
    for seed in seeds:
        program = value_program(seed)
        module = kernel(program.text)
        function = module.functions[0]
        environment = Environment(function, module, (64, 1, 1), (0, 1), Symbols())
        found = AlikeThreads(kernel_of(function, module, 64), function, environment, settled_loads(function, environment))
        stores = [each for each in function.instructions() if row_of(each).is_store]
        for store, values in zip(stores, program.registers.values(), strict=True):
            exact, _ = found.of_values(store)
            held = [np.array_equal(values[np.arange(64) ^ mask], values) for mask in np.flatnonzero(exact)]
            said += len(held) - 1
            wrong += [] if all(held) else [seed]
    return wrong, said


def test_threads_of_random_programs_have_the_values_that_are_said() -> None:
    wrong, said = _differing(range(60))
    assert (wrong, said > 1000) == ([], True)


def test_a_fault_shows_in_random_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, alike, "if takes_either_order(instruction) else ()", "")
    assert _differing(range(20))[0]


def test_races_that_count_as_none_are_said_at_each_launch() -> None:
    found = conditions_of(answer(SAME["the same element"], notes=True))
    assert found is not None
    assert LaunchConditions.restored(found.stored()).assumed() == (STAYS, ONE_VALUE)


def test_where_an_operand_begins_is_said_at_each_launch() -> None:
    body = PROVEN["a product of swizzled operands"].replace(".align 1024", ".align 16")
    found = conditions_of(answer(body))
    assert found is not None
    assert found.assumed()[1:] == ("m begins at a multiple of 128 bytes",)


# A rule, its module, the fault, and a case that is proven with it.
FAULTS: dict[str, tuple[ModuleType, str, str, str]] = {
    "values of threads": (by_many, "return has_one_value(operand.name)", "return True", "values of threads at one place"),
    "values of rounds": (by_many, "len(made) != 1 or", "not made or", "values of rounds at one place"),
    "values that are loaded": (
        by_many, "return key in parameter_words(made[0], self._parameters)", "return True", "a value that is loaded at one place",
    ),
    "instructions of one value": (by_many, "store is not other.instruction", "False", "one value by two instructions"),
    "CTAs of one value": (by_many, "not pair.one_cta or ", "", "one value of two CTAs"),
    "exchanged bits": (alike, "masks[np.arange(len(masks)) ^ bit]", "masks.any()", "a sum of half of the lanes"),
    "lanes that meet": (pairs, "[self._unlike(pair, pair.alike)]", "[z3.BoolVal(False)]", "sums of two warps"),
    "lanes that meet, by tables": (tables, "~alike[numbers[:, None] ^ numbers[None, :]]", "False", "sums of two warps"),
    "orders of a difference": (alike, "if takes_either_order(instruction) else ()", "", "a difference"),
    "lanes of a shuffle": (alike, "int(lanes.value) & _ALL_LANES == _ALL_LANES", "lanes.value", "a sum of some lanes"),
    "lanes of segments": (alike, "and last == WARP - 1", "", "a sum of lanes in segments"),
    "guards of sums": (alike, "for key in _guard(instruction)) & self._way", "for key in ()) & self._way", "a sum of all but one guard"),
    "guards of exchanges": (alike, "return shuffle.predicate is None and", "return", "an exchange under a guard"),
    "own numbers": (alike, "if own == [source]:", "if len(own) == 1:", "a sum with another number"),
    "numbers that have changed": (
        alike, "if not {to, *given[1]}.intersection(keys)}", "if to not in keys}", "a sum with a number that has changed",
    ),
    "numbers that some change": (alike, "len(before) != 1 or", "not before or", "a sum with a number that has changed in some"),
    "products of other numbers": (
        alike, "sorted(map(str, own)) == sorted(map(str, held.get(source, (0, ()))[1]))", "own", "a product of another number",
    ),
    "lanes of other shuffles": (alike, "else (of_warps, of_warps)", "else (self._all, self._all)",
        "elements of lanes, by a shuffle"),
    "warps of one instruction for all lanes": (alike, "range(WARP.bit_length() - 1)", "range(WARP.bit_length())",
        "a sum of each warp by one instruction"),
    "lanes of one instruction for all": (
        alike, "return lanes is not None and lanes & _ALL_LANES == _ALL_LANES", "return True", "a sum of some lanes by one instruction",
    ),
    "rounds of one value": (pairs, "for each in pair.first.rounds]\n        return either", "for each in ()]\n        return either",
        "values of rounds that all load"),
    "strong loads": (settled, " or has_strong_accesses(function)", "", "a word that others write meanwhile"),
    "registers that nobody has written": (alike, "dict.fromkeys(self._undefined, self._none)", "{}", "a word that nobody has loaded"),
    "guards of loads": (alike, "exact & here\n", "exact\n", "a guess that other threads load"),
    "ways of threads": (
        alike, "elif _turns(each):", "elif False:", "a choice of threads that also store",
    ),
    "choices of threads": (alike, "self._within[key] & here for", "self._within[key] for", "a choice of threads"),
}  # fmt: skip


@pytest.mark.parametrize("rule", FAULTS)
def test_a_fault_in_what_threads_store(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, old, new, case = FAULTS[rule]
    body = {**RACES, **DIFFER}[case]
    assert MEET in {each.why for each in answer(body, notes=True).reasons}
    plant(monkeypatch, module, old, new)
    assert answer(body, notes=True).answer == "proven"
