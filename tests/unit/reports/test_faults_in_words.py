"""Faults planted in the words of a finding, each with the test of another file that then fails."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
import test_rounds
import test_wording
from planted import plant_in_module

from consan.reports.words import ordering, wording

FAULTS: dict[str, tuple[ModuleType, str, str, ModuleType, Callable[[], None]]] = {
    "no loop, no earlier round": (
        ordering,
        "first.ptx_line) is False",
        "first.ptx_line) is None",
        test_rounds,
        lambda: test_rounds.test_the_text_tells_of_which_round_an_access_is({(1, 2), (1, 3)}, "RAW", "released-by-other"),
    ),
    "a read behind the loop": (
        ordering,
        "_only_behind(second, first, finding.kernel, relations)",
        "False",
        test_rounds,
        lambda: test_rounds.test_the_text_tells_of_which_round_an_access_is(test_rounds.ROUND | {(1, 3)}, "RAW", "released-before"),
    ),
    "CTAs of no cluster": (
        wording,
        'if situation in ("arrive-scope", "wait-scope") and',
        "if False and",
        test_wording,
        lambda: test_wording.test_the_scope_that_is_asked_for_includes_the_other_cta("wait-scope", None, ".gpu"),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_lets_a_test_fail(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, old, new, user, test = FAULTS[fault]
    test()
    plant_in_module(monkeypatch, module, old, new, [user])
    with pytest.raises(AssertionError):
        test()
