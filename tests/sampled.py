"""Samples of parametrised tests whose cases check one rule: most cases are marked slow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import pytest


def one_in(number: int, values: Iterable[Any], ids: Callable[[Any], str]) -> list[Any]:
    """The cases. One of each `number` runs without `-m slow`, the others are marked slow."""
    return [pytest.param(value, id=ids(value), marks=pytest.mark.slow if at % number else ()) for at, value in enumerate(values)]


def but(slow: Collection[Any], values: Iterable[Any]) -> list[Any]:
    """The cases. Those of `slow` are marked slow: another one of the group checks the same."""
    return [pytest.param(value, marks=pytest.mark.slow if value in slow else ()) for value in values]
