"""The markers of a test: the kinds it expects, and those it allows, with reasons.

`consan(expect=...)` names one or several kinds, all of which must be found. `consan_allow(KIND, reason=...)` is a suppression for one
test. Other markers, and unknown kinds, raise `pytest.UsageError` with the test's name.
"""

from __future__ import annotations

from typing import Any

import pytest

from consan.dataclass import dataclass
from consan.reports.verdict.suppression import Rule, SuppressionError, make_rule

EXPECTED = "expected by this test"


@dataclass(frozen=True)
class Marks:
    """The content of a test's markers."""

    expected: tuple[str, ...] = ()
    allowed: tuple[Rule, ...] = ()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Rules for findings that do not count: expected and allowed ones."""
        return (*(Rule(kind, EXPECTED, "marker consan") for kind in self.expected), *self.allowed)


def read(item: pytest.Item) -> Marks:
    """The markers of a test, its class and its module."""
    try:
        expected = tuple(dict.fromkeys(kind for marker in item.iter_markers("consan") for kind in _expected(marker)))
        return Marks(expected, tuple(_allowed(marker) for marker in item.iter_markers("consan_allow")))
    except SuppressionError as error:
        raise pytest.UsageError(f"{item.nodeid}: {error}") from None


def _expected(marker: pytest.Mark) -> tuple[str, ...]:
    unknown = set(marker.kwargs) - {"expect"}
    if marker.args or unknown or "expect" not in marker.kwargs:
        raise SuppressionError("marker consan: write consan(expect=KIND)")
    given: Any = marker.kwargs["expect"]
    kinds = (given,) if isinstance(given, str) else tuple(given)
    for kind in kinds:
        make_rule(kind, EXPECTED, "marker consan")  # complains about an unknown kind
    return kinds


def _allowed(marker: pytest.Mark) -> Rule:
    limits = {name: value for name, value in marker.kwargs.items() if name in ("kernel", "source")}
    if len(marker.args) != 1 or set(marker.kwargs) - {"reason", "kernel", "source"}:
        raise SuppressionError("marker consan_allow: write consan_allow(KIND, reason=...)")
    return make_rule(marker.args[0], str(marker.kwargs.get("reason", "")), "marker consan_allow", **limits)
