"""The arguments of a launch for several ranks."""

from __future__ import annotations

from typing import Any

from consan._errors import UsageError


def of_all_ranks(args: Any, ranks: int, count: int) -> list[Any]:
    """The values for all ranks, one rank after the other. `args`: a list of `count` values for each, or a function of the rank."""
    given = [args(rank) for rank in range(ranks)] if callable(args) else list(args)
    if len(given) != ranks or any(len(each) != count for each in given):
        raise UsageError(f"args: expected a list for each of {ranks} ranks, of {count} values each")
    return [value for each in given for value in each]
