"""The places of threads when the host stopped their launch, from the records that they write before they exit (StandRecord).

The lanes of a warp may exit one after another, so records of one warp and place are merged. Some threads write no record: those at
a barrier that only the exits of others released, and those that had ended or had not started.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from consan.instrument.abi.events import dim3
from consan.instrument.abi.sizes import STAND_AT_SITE
from consan.instrument.sites import Place, Site
from consan.reports.model import Dim3
from consan.reports.positions import RUNNING
from consan.reports.source.places import shown_at
from consan.reports.waiting.waiters import Waiter

if TYPE_CHECKING:
    from consan.session.modules.prepared import Prepared

Waiters = list[dict[str, Any]]
_WAITING: Final = "waiting"


def positions(records: npt.NDArray[np.void], modules: Mapping[int, Prepared], last: str) -> dict[str, Waiters]:
    """Waiters of a report (`block`, `warp`, `lanes`, ...) for each kernel that was running; `last` was launched last."""
    merged: dict[tuple[Any, ...], Waiter] = {}
    for record in records:
        prepared = modules.get(int(record["module"]))
        if prepared is None:
            continue
        block, warp = dim3(record["ctaid"]), int(record["warp"])
        found = waiter(prepared, block, warp, int(record["lanes"]), int(record["place"]))
        key = (prepared.number, int(record["entry"]), *block, warp, found.place.get("ptx_line", 0))
        merged[key] = replace(known, lanes=known.lanes | found.lanes) if (known := merged.get(key)) else found
    by_kernel: dict[str, Waiters] = {}
    for key in sorted(merged):
        number, entry, *_ = key
        by_kernel.setdefault(_kernel(modules[number], entry, last), []).append(merged[key].as_dict())
    return by_kernel


def waiter(prepared: Prepared, block: Dim3, warp: int, lanes: int, place: int) -> Waiter:
    """Lanes of a warp at a line of the PTX, or at a site (STAND_AT_SITE)."""
    return Waiter(block, warp, lanes, *_at(prepared, place))


def _kernel(prepared: Prepared, entry: int, last: str) -> str:
    return prepared.entries[entry] if entry < len(prepared.entries) else last


def _at(prepared: Prepared, place: int) -> tuple[str, dict[str, Any]]:
    """The last known action of a thread, and its place: it waited at a barrier, or it looped around a line of the PTX or a wait."""
    found = _site(prepared, place & ~STAND_AT_SITE) if place & STAND_AT_SITE else prepared.instrumented.places.get(place)
    waiting = isinstance(found, Site) and found.row.is_cta_barrier
    return _WAITING if waiting else RUNNING, shown_at(found) if found is not None else {}


def _site(prepared: Prepared, number: int) -> Place | Site | None:
    sites = prepared.instrumented.sites
    return sites[number - 1] if 1 <= number <= len(sites) else None
