"""The arguments of a launch for several ranks, and its text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from consan._errors import UsageError
from consan.instrument.ptx import Module
from consan.instrument.rewriting.multicast import ABOVE, of_each_rank
from consan.instrument.rewriting.ranked import Dim3, check_count, has_barriers, ranked
from consan.launching.placement import Multicast, Placement, Symmetric, room_of

_OF_SYNC: Final = "NVSHMEM's sync completes no puts, other than its barrier; here it does"
_OF_NBI: Final = (
    "NVSHMEM may read the source of a put that is not blocking (_nbi), and write the destination of such a get, up to quiet; here both are"
    " done at once"
)
_OF_COLLECTIVES: Final = "NVSHMEM's collectives order their own data alone; here they order what their thread did before, too"


def of_all_ranks(args: Any, ranks: int, count: int) -> list[Any]:
    """The values for all ranks, one rank after the other. `args`: a list of `count` values for each, or a function of the rank."""
    check_count(ranks)
    given = [args(rank) for rank in range(ranks)] if callable(args) else list(args)
    if len(given) != ranks or any(len(each) != count for each in given):
        raise UsageError(f"args: expected a list for each of {ranks} ranks, of {count} values each")
    return [value for each in given for value in each]


def with_counters(module: Module, ranks: int, args: list[Any]) -> list[Any]:
    """The values for all ranks, and what NVSHMEM's barriers and collectives count, if the module has any: see consan/include/nvshmem.h."""
    return [*args, np.zeros((ranks, 2, ranks + 1), np.uint64)] if has_barriers(module) else args


def module_of_ranks(module: Module, entry: str, ranks: int, grid: Dim3, args: Sequence[Any]) -> Module:
    """The module for so many ranks, each with this grid. `multimem` instructions become accesses to the memory of each rank."""
    windows = windows_of(args)
    if any(len(each.arrays) != ranks for each in windows):
        raise UsageError(f"{type(windows[0]).__name__}: expected an array of each of {ranks} ranks")
    module = of_each_rank(module, ranks, stride_of(windows)) if any(isinstance(each, Multicast) for each in args) else module
    return ranked(module, entry, ranks, grid, stride_of(windows))


def windows_of(args: Iterable[Any]) -> list[Symmetric]:
    """The symmetric allocations among arguments, each once."""
    found = [each for each in args if isinstance(each, Symmetric)]
    return list({tuple(map(id, each.arrays)): each for each in found}.values())


def stride_of(windows: Sequence[Symmetric]) -> int:
    """The distance of the memory of two ranks: that of a rank is one piece."""
    return sum(map(room_of, windows))


def place_windows(placement: Placement, args: Sequence[Any], ranks: int, module: Module) -> list[Any]:
    """Place the symmetric memory among the arguments of several ranks. Returns the arguments, with the own array of each rank."""
    windows = windows_of(args)
    if ranks == 1 and ("%envreg29" in module.text or any(type(each) is Symmetric for each in windows)):
        raise UsageError("NVSHMEM and consan.Symmetric need several ranks: consan.launch(..., ranks=N)")
    if windows and ranks > 1:
        placement.lay_out(windows, stride_of(windows), ABOVE)
        each = len(args) // ranks
        return [value.arrays[at // each] if type(value) is Symmetric else value for at, value in enumerate(args)]
    return list(args)


def unordered_puts(module: Module) -> list[str]:
    """Why what a kernel puts, or stores by `nvshmem_ptr`, is compared in part only: a signal here orders all that its thread did before."""
    signalled, put, got, stored, synced, collective, later = (
        f"// nvshmem: {each}\n" in module.text for each in ("put with signal", "put", "get", "ptr", "sync", "collective", "nbi")
    )
    found = {  # a report has the last one
        _OF_NBI: later,
        _OF_SYNC: synced and (put or signalled),
        _OF_COLLECTIVES: collective and (got or stored),
    }
    return [reason for reason, holds in found.items() if holds]
