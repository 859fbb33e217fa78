"""The sentences of `Report.not_checked`: what this version does not check by design.

One row for each area of memory missing from `checked`. A sentence begins with the area's name, so that programs can test for it, and counts
the instructions of the launched kernels. Such an area does not make a verdict incomplete: only gaps inside `checked` do.

Not handled: dynamic counts, which are not recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from consan.reports.model import KernelSummary, Report, kernels_checked, plural


def not_checked(report: Report) -> tuple[str, ...]:
    """One sentence for each area that is missing from the report's `checked`."""
    kernels = kernels_checked(report)
    areas = (f"{area}: {sentence(kernels)}" for area, sentence in _AREAS.items() if area not in report.checked)
    return (*areas, *_open_points(kernels), *_launches(kernels))


def _open_points(kernels: tuple[KernelSummary, ...]) -> tuple[str, ...]:
    """Warp-synchronous instructions in device functions that are called, and those of a kernel with too many of them."""
    found = [kernel.open_points for kernel in kernels if kernel.open_points]
    points = plural(sum(found), "warp-synchronous instruction")
    where = plural(len(found), "kernel")
    return (f"divergence: lanes that pass by {points} in {where} are seen only at a later one",) if found else ()


def _launches(kernels: tuple[KernelSummary, ...]) -> tuple[str, ...]:
    """Kernels of programmatic dependent launches (SEMANTICS 12, R-GM14)."""
    found = [kernel.name for kernel in kernels if kernel.grid_controls and not kernel.compared_launches]
    if not found:
        return ()
    return (f"launches: races between {', '.join(found)} and a kernel that runs beside it (griddepcontrol) are not looked for",)


def _global_memory(kernels: tuple[KernelSummary, ...]) -> str:
    gaps = [f"{kernel.name}: {', and '.join(dict.fromkeys(kernel.global_gaps))}" for kernel in kernels if kernel.global_gaps]
    return (
        f"races are not looked for in {'; in '.join(dict.fromkeys(gaps))}"
        if gaps
        else f"races are not looked for ({_global_writes(kernels)})"
    )


def _global_writes(kernels: tuple[KernelSummary, ...]) -> str:
    """`12 store and 3 atomic instructions in 2 kernels`."""
    if not kernels:
        return "no kernel was checked"
    stores, atomics = (sum(getattr(kernel, name) for kernel in kernels) for name in ("global_stores", "global_atomics"))
    generic = sum(kernel.generic_writes for kernel in kernels)
    more = f", and {generic:,} stores or atomics with generic addresses" if generic else ""
    return f"{stores:,} store and {plural(atomics, 'atomic instruction')} in {plural(len(kernels), 'kernel')}{more}"


_AREAS: Final[dict[str, Callable[[tuple[KernelSummary, ...]], str]]] = {"global-memory": _global_memory}


@cache
def installed_version() -> str:
    """The version of consan; "unknown" where it is not installed as a package."""
    from importlib import metadata

    try:
        return metadata.version("consan")
    except metadata.PackageNotFoundError:
        return "unknown"
