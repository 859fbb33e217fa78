"""The answers of `consan prove` for kernels whose CTAs are ordered by words of global memory; and with faults planted in the rules."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

pytest.importorskip("z3", reason="the solver is in the extra `prove`")

from planted import plant
from proof_cases import answer
from word_cases import PROVEN, RACES, branched

from consan.prove import step
from consan.prove.atomics import broadcasts, guarded, order, published, words

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
    "locks acquire": (words, "_access(each).acquires and ", "", "a lock that is taken by a relaxed operation"),
    "locks release": (
        words, "if acquire and _access(frees[0]).releases else", "if acquire else", "a lock that is freed by a relaxed operation",
    ),
    "flags release": (words, " or not _access(writers[0]).releases", "", "a flag that is set by a relaxed operation"),
    "one store frees": (words, "len(frees) != 1", "not frees", "a lock that CTAs free without it, too"),
    "locks are taken at 0": (words, "any(each != 0 for each in compared) or", "", "a lock that is freed where it is 1"),
    "locks are marked": (words, " or any(_stored(each) == 0 for each in locks)", "", "a lock that is not marked"),
    "counters alone": (words, "len(adds) == 1 and not", "len(adds) == 1 or not", "tickets of a counter that is cleared"),
    "one addition": (words, "alone = len(adds) == 1 and", "alone = bool(adds) and", "two additions"),
    "additions of 1": (words, "in (0, 1)", "in (0, 1, 2)", "additions of 2"),
    "flags acquire": (words, "return bool(_access(access).acquires)", "return True", "a flag that is read by a relaxed operation"),
    "counters release": (order, "releases(writer) and ", "", "the last CTA without a release"),
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
}  # fmt: skip


FORMS = pytest.mark.parametrize("form", [str, branched], ids=["guards", "branches"])


@FORMS
@pytest.mark.parametrize("body", PROVEN.values(), ids=PROVEN)
def test_what_words_order_is_proven(body: str, form: Callable[[str], str]) -> None:
    found = answer(form(body))
    assert (found.answer, found.reasons) == ("proven", [])


@FORMS
@pytest.mark.parametrize("body", RACES.values(), ids=RACES)
def test_what_words_do_not_order_is_not_proven(body: str, form: Callable[[str], str]) -> None:
    assert answer(form(body)).answer == "unknown"


def test_what_is_assumed_of_words_is_said() -> None:
    assert answer(PROVEN["a flag"]).premises() == ("the words that parameter 2 leads to are 0 when the kernel begins",)
    assert answer(PROVEN["the last CTA"]).premises() == ("the words that parameter 2 leads to count from 0 to less than 2^31",)
    assert not answer(PROVEN["a lock"]).premises()


@pytest.mark.parametrize("rule", FAULTS)
def test_a_fault_in_a_rule_of_words(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, old, new, case = FAULTS[rule]
    plant(monkeypatch, module, old, new)
    assert answer(RACES[case]).answer == "proven"
