"""Reads one record of the device with the site table and the layout of its module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.instrument.abi.bits import STATE
from consan.instrument.abi.events import CONFLICT, TYPES, FindingFlags, Found, Kind, Reason
from consan.instrument.abi.sizes import READ_SITE_LIMIT
from consan.instrument.relations import Relations
from consan.instrument.sites import Site
from consan.reports import frameworks
from consan.reports.model import VerifiedFix
from consan.reports.numbering import inside
from consan.reports.variables import Layout

Records = npt.NDArray[np.void]
_MBARRIER_BYTES = 8


@dataclass(frozen=True)
class ModuleSites:
    """One instrumented module as the host knows it: sites by number (1-based) and kernels by index."""

    sites: Sequence[Site]
    entries: Sequence[str]
    framework: str = frameworks.CUDA  # the framework whose words the fixes use
    layout: Callable[[str], Layout] = lambda entry: Layout()  # of a kernel's shared memory
    address_name: Callable[[str, int, int], str] = lambda entry, begin, end: ""  # of bytes of global memory that a kernel touched
    relations: Relations | None = None  # which site can follow which, from the text
    fixes: Mapping[int, VerifiedFix] = field(default_factory=dict)  # by the number of the finding in the table
    isa: bool = False  # the stricter reading (SEMANTICS 9)

    def site(self, number: int) -> Site | None:
        """The site, or None where the device did not keep it."""
        return self.sites[number - 1] if 1 <= number <= len(self.sites) and number != READ_SITE_LIMIT else None


def kernel_of(found: Found) -> tuple[int, int]:
    """The module and the kernel."""
    return int(found.event["module"]), int(found.event["entry"])


def reason_of(found: Found) -> Reason:
    """Why the device reported it."""
    return Reason(int(found.event["reason"]))


def fields_of(found: Found) -> tuple[str, ...]:
    """The names of the fields of its own type."""
    return (found.own.dtype.names or ()) if found.own is not None else ()


def operation_numbers(found: Found) -> tuple[int, int]:
    """The operations (their kinds) of the other side and of the own one; 0 where there is none, or a cp.async."""
    names = fields_of(found)
    other, own = (int(found.own[name]) if name in names else 0 for name in ("operation", "own_operation"))
    return other, own


def is_copy(found: Found) -> bool:
    """Whether the operation of a missing wait, or of the end of a CTA, is a cp.async."""
    return not any(operation_numbers(found))


def is_conflict(found: Found) -> bool:
    """Whether the record has two sides."""
    return TYPES[found.kind][1] is CONFLICT


def entry_of(found: Found, module: ModuleSites) -> str:
    """The kernel's name."""
    return module.entries[int(found.event["entry"])]


def is_global(found: Found) -> bool:
    """Whether the bytes are in global memory."""
    return reason_of(found) is Reason.SOURCE_OVERWRITTEN or bool(int(found.event["flags"]) & FindingFlags.GLOBAL)


def range_of(found: Found) -> tuple[int, int] | None:
    """The bytes in conflict; None for cells of tensor memory."""
    if int(found.event["flags"]) & FindingFlags.TENSOR:
        return None
    begin = int(found.own["address"]) if is_global(found) else inside(found.event, int(found.event["offset"]))
    return (begin, begin + int(found.event["bytes"])) if found.event["bytes"] else None


def merged(found: Found, table: Records | None) -> tuple[int, int, int, int]:
    """Count, CTAs, and the range of bytes, of all occurrences."""
    begin, nbytes = int(found.event["offset"]), int(found.event["bytes"])
    if table is None:
        return 1, 1, begin, begin + nbytes
    entry = table[int(found.event["table"])]
    # The device keeps the complement of the lower bound, so that zeroed memory is the identity of its maximum.
    low, high = int(~entry["low"]) & 0xFFFFFFFF, int(entry["high"])
    # An offset below the CTA's memory is a negative number in 32 bits, whose end wraps. Others may be above that memory.
    below = begin >> 31 and not low >> 31 and not found.event["cta_bytes"]
    low = begin - (1 << 32) if below else low
    return max(1, int(entry["count"])), max(1, int(entry["ctas"])), low, high if high > low else low + nbytes


def layout_of(found: Found, module: ModuleSites) -> Layout:
    """The layout of the kernel's shared variables."""
    return module.layout(entry_of(found, module))


def completion_of(found: Found) -> Any:
    """How the operation in flight completes, if the finding has one."""
    return found.own["completion"] if "completion" in fields_of(found) else None


def barrier_of(found: Found) -> Any:
    """The mbarrier of a finding, if it has one."""
    done = completion_of(found)
    barrier = done["barrier"] if done is not None else found.own["barrier"] if found.kind is Kind.BARRIER_MISUSE else None
    return barrier if barrier is not None and barrier["place"] else None


def barrier_state(found: Found, module: ModuleSites) -> dict[str, Any] | None:
    """The mbarrier of a finding: its phase (for an operation, the one that completes it) and its counts at that moment."""
    barrier = barrier_of(found)
    if barrier is None:
        return None
    offset, phase, expected = int(barrier["place"]) - 1, int(barrier["phase"]), int(barrier["expected"])
    place: dict[str, Any] = {"offset": inside(found.event, offset)}
    place |= {"name": name} if (name := barrier_name(found, barrier, module)) else {}
    if found.event["cta_bytes"]:
        place["cluster_rank"] = offset // int(found.event["cta_bytes"])
    if not barrier["state"] and not expected:  # never initialised: nothing is known
        return place
    known = place | {"phase": phase, "parity": phase & 1, "expected": expected}
    if found.kind is not Kind.BARRIER_MISUSE:  # the barrier may be phases ahead of the one that completes an operation
        return known
    state = STATE.unpack(int(barrier["state"]))
    return known | {"pending": state["pending"], "tx": state["tx"]}


def barrier_name(found: Found, barrier: Any, module: ModuleSites) -> str:
    """`full[0]`, if the layout knows the variable."""
    offset = inside(found.event, int(barrier["place"]) - 1)
    return layout_of(found, module).name(offset, offset + _MBARRIER_BYTES)
