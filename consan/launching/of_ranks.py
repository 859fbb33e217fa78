"""The arguments of a launch for several ranks, and its text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from consan._errors import UsageError
from consan.instrument.ptx import Module
from consan.instrument.rewriting.multicast import of_each_rank
from consan.instrument.rewriting.ranked import Dim3, check_count, ranked
from consan.launching.placement import Multicast, Placement

_ALIGNMENT: Final = 256


def of_all_ranks(args: Any, ranks: int, count: int) -> list[Any]:
    """The values for all ranks, one rank after the other. `args`: a list of `count` values for each, or a function of the rank."""
    check_count(ranks)
    given = [args(rank) for rank in range(ranks)] if callable(args) else list(args)
    if len(given) != ranks or any(len(each) != count for each in given):
        raise UsageError(f"args: expected a list for each of {ranks} ranks, of {count} values each")
    return [value for each in given for value in each]


def module_of_ranks(module: Module, entry: str, ranks: int, grid: Dim3, args: Iterable[Any]) -> Module:
    """The module for so many ranks, each with this grid. Where arguments are multimem addresses, with accesses to each rank."""
    windows = windows_of(args)
    if any(len(each.arrays) != ranks for each in windows):
        raise UsageError(f"Multicast: expected an array of each of {ranks} ranks")
    module = of_each_rank(module, ranks, stride_of(windows)) if windows else module
    return ranked(module, entry, ranks, grid)


def windows_of(args: Iterable[Any]) -> list[Multicast]:
    """The multimem addresses among arguments, each once."""
    found = [each for each in args if isinstance(each, Multicast)]
    return list({tuple(map(id, each.arrays)): each for each in found}.values())


def stride_of(windows: Sequence[Multicast]) -> int:
    """The distance of the memory of two ranks: one for all addresses of a launch. Something is left free behind each."""
    return max(-(-each.arrays[0].nbytes // _ALIGNMENT) * _ALIGNMENT for each in windows) + _ALIGNMENT


def place_windows(placement: Placement, args: Iterable[Any], ranks: int) -> None:
    """Place the memory behind the multimem addresses among the arguments of several ranks."""
    windows = windows_of(args)
    if windows and ranks > 1:
        placement.lay_out(windows, stride_of(windows))
