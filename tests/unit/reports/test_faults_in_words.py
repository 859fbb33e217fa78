"""Faults planted in the words of a finding, each with the test of another file that then fails."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
import test_grid_barrier
import test_looped_store
import test_rounds
import test_wording
from planted import plant

from consan.instrument.relations import Order
from consan.reports.waiting import deadlocks
from consan.reports.words import ordering, wording

FAULTS: dict[str, tuple[ModuleType, str, str, Callable[[], None]]] = {
    "no loop, no earlier round": (
        ordering,
        "first.ptx_line) is False",
        "first.ptx_line) is None",
        lambda: test_rounds.test_the_text_tells_of_which_round_an_access_is({(1, 2), (1, 3)}, "RAW", "released-by-other"),
    ),
    "a read behind the loop": (
        ordering,
        "_only_behind(second, first, finding.kernel, relations)",
        "False",
        lambda: test_rounds.test_the_text_tells_of_which_round_an_access_is(test_rounds.ROUND | {(1, 3)}, "RAW", "released-before"),
    ),
    "one store in a loop": (
        ordering,
        "LOOPED_STORE if carried else ONE_STORE",
        "ONE_STORE",
        lambda: test_looped_store.test_shape(Order(swapped=False, carried=True), "looped-store"),
    ),
    "the barrier of the grid": (
        deadlocks,
        "if {poll.text for poll in polls} == {OF_GRID}:",
        "if False:",
        test_grid_barrier.test_the_barrier_of_the_grid_is_named,
    ),
    "the barrier of the grid, and other memory": (
        deadlocks,
        "{poll.text for poll in polls} == {OF_GRID}",
        "OF_GRID in {poll.text for poll in polls}",
        test_grid_barrier.test_other_memory_that_is_polled_besides,
    ),
    "CTAs of no cluster": (
        wording,
        'if situation in ("arrive-scope", "wait-scope") and',
        "if False and",
        lambda: test_wording.test_the_scope_that_is_asked_for_includes_the_other_cta("wait-scope", None, ".gpu"),
    ),
    "an initialisation for peers": (
        wording,
        'situation == "init-not-published" and',
        "False and",
        lambda: test_wording.test_an_initialisation_is_published_to_who_uses_it(1, "put cluster.sync()"),
    ),
    "columns that are freed": (
        wording,
        'situation == "tensor-no-barrier" and',
        "False and",
        lambda: test_wording.test_columns_that_are_freed_before_a_load_is_over("tcgen05.ld", True),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_lets_a_test_fail(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, old, new, test = FAULTS[fault]
    test()
    plant(monkeypatch, module, old, new)
    with pytest.raises(AssertionError):
        test()
