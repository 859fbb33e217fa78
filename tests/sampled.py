"""Cases of which some run in the quick tier, and all in the slow one: they show the same thing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def one_in(number: int, values: Iterable[Any], ids: Callable[[Any], str]) -> list[Any]:
    """The cases, of which one in so many is quick."""
    return [pytest.param(value, id=ids(value), marks=pytest.mark.slow if at % number else ()) for at, value in enumerate(values)]
