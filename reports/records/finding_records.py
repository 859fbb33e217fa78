"""Reads the record of a finding with the site table and the layout of its module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from consan.dataclass import dataclass
from consan.instrument.abi.bits import STATE
from consan.instrument.abi.sizes import READ_SITE_LIMIT
from consan.instrument.findings import FindingFlags, FindingRecord, Kind, MbarrierPhase, Reason
from consan.instrument.relations import Relations
from consan.instrument.sites import Site
from consan.reports.model import VerifiedFix
from consan.reports.records.numbering import inside
from consan.reports.source.variables import Layout
from consan.reports.words import frameworks

MBARRIER_BYTES = 8


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
    variable_name: Callable[[int, int], str] = lambda begin, end: ""  # of bytes of the module's variables

    def site(self, number: int) -> Site | None:
        """The site, or None where the record does not have it."""
        return self.sites[number - 1] if 1 <= number <= len(self.sites) and number != READ_SITE_LIMIT else None


def kernel_of(found: FindingRecord) -> tuple[int, int]:
    """The module and the kernel."""
    return found.module, found.entry


def is_copy(found: FindingRecord) -> bool:
    """Whether the operation of a missing wait, or of the end of a CTA, is a cp.async."""
    return not (found.operation or found.own_operation)


def entry_of(found: FindingRecord, module: ModuleSites) -> str:
    """The kernel's name."""
    return module.entries[found.entry]


def is_global(found: FindingRecord) -> bool:
    """Whether the bytes are in global memory."""
    return found.reason is Reason.SOURCE_OVERWRITTEN or FindingFlags.GLOBAL in found.flags


def range_of(found: FindingRecord) -> tuple[int, int] | None:
    """The bytes in conflict; None for cells of tensor memory."""
    if FindingFlags.TENSOR in found.flags or not found.bytes:
        return None
    begin = found.address if is_global(found) else inside(found, found.offset)
    return begin, begin + found.bytes


def layout_of(found: FindingRecord, module: ModuleSites) -> Layout:
    """The layout of the kernel's shared variables."""
    return module.layout(entry_of(found, module))


def barrier_of(found: FindingRecord) -> MbarrierPhase | None:
    """The mbarrier of a misuse, or the one that signals the completion of an operation."""
    if found.completion is not None:
        return found.completion.barrier
    return found.barrier if found.kind is Kind.BARRIER_MISUSE else None


def barrier_state(found: FindingRecord, module: ModuleSites) -> dict[str, Any] | None:
    """The mbarrier of a finding: its phase (for an operation, the one that completes it) and its counts at that moment."""
    barrier = barrier_of(found)
    if barrier is None:
        return None
    place: dict[str, Any] = {"offset": inside(found, barrier.offset)}
    place |= {"name": name} if (name := barrier_name(found, barrier, module)) else {}
    if found.geometry.cta_bytes:
        place["cluster_rank"] = barrier.offset // found.geometry.cta_bytes
    if not barrier.state and not barrier.expected:  # never initialised: nothing is known
        return place
    known = place | {"phase": barrier.phase, "parity": barrier.phase & 1, "expected": barrier.expected}
    if found.kind is not Kind.BARRIER_MISUSE:  # the barrier may be phases ahead of the one that completes an operation
        return known
    state = STATE.unpack(barrier.state)
    return known | {"pending": state["pending"], "tx": state["tx"]}


def barrier_name(found: FindingRecord, barrier: MbarrierPhase, module: ModuleSites) -> str:
    """`full[0]`, if the layout knows the variable."""
    offset = inside(found, barrier.offset)
    return layout_of(found, module).name(offset, offset + MBARRIER_BYTES)
