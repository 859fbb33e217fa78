"""The answers of `consan prove` for kernels whose CTAs are ordered by words of global memory; and with faults planted in the rules."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

pytest.importorskip("z3", reason="the solver is in the extra `prove`")

import handed_cases
import round_cases
from planted import plant
from proof_cases import answer
from word_cases import PROVEN, RACES, branched

from consan.prove import step
from consan.prove.atomics import broadcasts, fences, growing, guarded, order, published, words
from consan.prove.loops import unrolled

FAULTS: dict[str, tuple[ModuleType, str, str, str]] = {
    "values of skipped instructions": (
        guarded, "    return alone and all(", "    return True or all(", "a place that a short branch gives to one thread",
    ),
    "a condition that stays": (
        guarded, " or branch.guard.register in written(step.instruction)", "", "a short branch that changes its condition",
    ),
    "the only way to skipped instructions": (
        guarded, " or set(before[node.falls]) != {number}", "", "a short branch that others jump into",
    ),
    "locks acquire": (words, "fences.acquires(each) and ", "", "a lock that is taken by a relaxed operation"),
    "locks release": (
        words, "if acquire and fences.releases(frees[0]) else", "if acquire else", "a lock that is freed by a relaxed operation",
    ),
    "flags release": (words, " or not fences.releases(writers[0])", "", "a flag that is set by a relaxed operation"),
    "one store frees": (words, "len(frees) != 1", "not frees", "a lock that CTAs free without it, too"),
    "locks are taken at 0": (words, "any(each != 0 for each in compared) or", "", "a lock that is freed where it is 1"),
    "locks are marked": (words, " or any(_stored(each) == 0 for each in locks)", "", "a lock that is not marked"),
    "counters alone": (words, " or own[WordAccess.STORES]", "", "tickets of a counter that is cleared"),
    "one addition": (words, "len(adds) != 1", "not adds", "a barrier to which one thread adds twice"),
    "additions of 1": (words, "in (0, 1)", "in (0, 1, 2)", "additions of 2"),
    "flags acquire": (fences, "return bool(_touch(access).acquires) or", "return True or", "a flag that is read by a relaxed operation"),
    "counters release": (order, "self._fences.releases(writer) and ", "", "the last CTA without a release"),
    "one thread adds": (order, "and self._first.is_the_first(writer.path)", "", "additions of all threads"),
    "one CTA sets a flag": (order, "_SECONDS) is not False", "_SECONDS) is None", "a flag that two CTAs set"),
    "the first to set a flag": (order, "compared.term == 0", "compared.term != 0", "a flag that only another CTA sets"),
    "which flag": (order, "both(writes, place == read, seen != 0)", "both(writes, seen != 0)", "another flag"),
    "which lock": (
        order, "both(place == other_place, seen == 0, other_seen == 0)", "both(seen == 0, other_seen == 0)", "a lock of each CTA",
    ),
    "flags that are set": (order, "both(writes, place == read, seen != 0)", "both(writes, place == read)", "any of the first flags"),
    "locks that are held": (order, "taken = both(result.seen == 0, ", "taken = both(", "a lock that CTAs free without it"),
    "who frees a lock": (
        order, "return self._questions.always(writer, taken, _SECONDS)", "return True", "a lock that CTAs free without it",
    ),
    "counters of one word": (
        order, "z3.Implies(place == other_place, seen != other_seen)", "seen != other_seen", "tickets of counters of CTAs",
    ),
    "a barrier before the write": (
        published, " and there not in behind(self._cut, [here])", "", "a flag that no barrier comes before, behind a branch",
    ),
    "writes behind accesses": (
        published, "if not self._uniform.after.sets[here] >> there & 1:", "if False:", "data behind the flag and a branch",
    ),
    "writes in rounds": (
        published, "return not write.rounds and node not in behind(self._view.edges, [node])", "return True", "additions in rounds",
    ),
    "which word is handed on": (broadcasts, "_place(step.instruction, made) == place", "True", "a lock beside another word"),
    "the last word that is handed on": (
        broadcasts, "in reversed(graph.nodes[node].steps)", "in graph.nodes[node].steps", "a lock that is handed on and changed",
    ),
    "who hands it on": (step, "and self.first.holds(held)", "", "a lock that another thread hands on"),
    # fences, and what one thread has read before a barrier
    "fences of all CTAs": (fences, " and event.scope in _OF_ALL_CTAS", "", "a fence of the CTA"),
    "whose fence": (fences, "and step.guard in (None, guard))", "and True)", "a fence of another thread"),
    "a guard that changes": (fences, "guard.register in written(step.instruction)", "False", "a fence whose condition changes"),
    "all ways to a fence": (fences, "return None, guard", "return True, guard", "a read between a lock and its fence"),
    "ways without a fence": (fences, "() if met else edges[way.node]", "()", "a fence on one of two ways"),
    "barriers before a fence": (
        fences, "return known and all(", "return (known or row.is_barrier) and all(", "a fence before the barrier",
    ),
    "writes before a fence": (fences, "touch.in_shared or not touch.is_visible", "True", "a write between a fence and the release"),
    "reads before a barrier": (published, "if before in later or", "if", "a lock without a barrier before it is freed, behind a branch"),
    "a barrier on each way": (
        published, "return after not in reached(", "return True or after not in reached(", "a lock whose barrier some pass by",
    ),
    "who has left": (published, " and self._uniform.all_stay", "", "a lock whose thread may have left"),
    # numbers of rounds
    "numbers that grow": (growing, "step.as_long() > 0", "step.as_long() != 0", "numbers that fall"),
    "the first number": (order, "self.stored > 0", "self.stored >= 0", "a first number of 0"),
    "whose number": (order, 'all(name[0] in "pc" for name in names)', "True", "numbers of threads"),
    "other writers of a number": (
        order, "and all(self._questions.model(each, _SECONDS) is False for each in pairs)", "", "two numbers of rounds in one word",
    ),
    "which round": (order, "seen >= stored)", "seen >= stored - 1)", "a round too early"),
    "numbers that are released": (words, "grows(each) and fences.releases(each)", "grows(each)", "a number of rounds that is not released"),
    "a barrier before a number": (
        growing, " and there not in behind(self._cut, [here])", "", "a number of rounds without a barrier, behind a branch",
    ),
    "data before the number": (
        growing, "head not in behind(self._view.edges, [here], without={there}) and ", "", "a number before the end and the data",
    ),
    "a wait in each round": (
        growing, " and after not in reached(self._view.edges, [head], within=body, without={node})", "", "a wait in every other round",
    ),
    "runs that a release divides": (
        unrolled, "+= bool(access.strong)", "+= 0", "a write beside another one, behind the release",
    ),
    "what was read last": (order, "is writer else 1)", "is writer else 0)", "a barrier of all but one"),
}  # fmt: skip
_RACES = RACES | handed_cases.RACES | round_cases.RACES
_PROVEN = PROVEN | handed_cases.PROVEN | round_cases.PROVEN


FORMS = pytest.mark.parametrize("form", [str, branched], ids=["guards", "branches"])


@FORMS
@pytest.mark.parametrize("body", _PROVEN.values(), ids=_PROVEN)
def test_what_words_order_is_proven(body: str, form: Callable[[str], str]) -> None:
    found = answer(form(body))
    assert (found.answer, found.reasons) == ("proven", [])


@FORMS
@pytest.mark.parametrize("body", _RACES.values(), ids=_RACES)
def test_what_words_do_not_order_is_not_proven(body: str, form: Callable[[str], str]) -> None:
    assert answer(form(body)).answer == "unknown"


def test_each_form_with_a_race_is_another_one() -> None:
    assert set(_RACES.values()).isdisjoint(_PROVEN.values())


def test_what_is_assumed_of_words_is_said() -> None:
    assert answer(PROVEN["a flag"]).premises() == ("the words that parameter 2 leads to are 0 when the kernel begins",)
    assert answer(PROVEN["the last CTA"]).premises() == ("the words that parameter 2 leads to count from 0 to less than 2^31",)
    assert not answer(PROVEN["a lock"]).premises()


@pytest.mark.parametrize("rule", FAULTS)
def test_a_fault_in_a_rule_of_words(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, old, new, case = FAULTS[rule]
    plant(monkeypatch, module, old, new)
    assert answer(_RACES[case]).answer == "proven"
