"""A finding of a report as a record of the checker, for the search of its repairs."""

from __future__ import annotations

import re
from typing import Any, Final

from consan.checker.repairs.text_places import TextPlaces
from consan.instrument.findings import KINDS, FindingFlags, Hazard, Kind, Operation, Reason
from consan.instrument.sites import Site
from consan.reports.catalogue.global_races import NO_SIDE
from consan.reports.model import Finding
from consan.reports.source.places import waiting_places

REGISTERS: Final = "register-hazard"
RECORDED: Final = {each.name: kind for kind, each in KINDS.items()} | {REGISTERS: Kind.MISSING_WAIT, "barrier-misuse": Kind.BARRIER_MISUSE}
_OPERATIONS: Final = {"wgmma": Operation.WGMMA, "bulk": Operation.BULK_LOAD, "tensor": Operation.BULK_LOAD}
_OF_TENSOR_MEMORY: Final = re.compile(r"tcgen05\.(mma|cp|shift|ld|st)\b")


def _operation_of(site: Site) -> int:
    """The operation that an instruction starts; 0: none."""
    if tensor := _OF_TENSOR_MEMORY.match(site.opcode):
        return int(Operation[f"TCGEN05_{tensor[1].upper()}"])
    return int(Operation.BULK_STORE if "global.shared" in site.opcode else _OPERATIONS.get(site.family, 0))


def record_of(finding: Finding, text: TextPlaces) -> dict[str, Any]:
    """A finding of a report as the checker's records have it."""
    numbers = {site.ptx_line: number for number, site in text.places.sites.items()}
    sites = [
        numbers[access.ptx_line]
        for access in ((*finding.accesses, *waiting_places(finding)) if finding.kind == "deadlock" else finding.pair)
        if access.ptx_line in numbers
    ]
    first = text.places.sites[sites[0]] if sites else None
    operation = _operation_of(first) if first else 0
    situation = "no-release" if finding.situation == NO_SIDE else finding.situation
    reason = Reason.__members__.get(situation.partition("@")[0].upper().replace("-", "_"), Reason.NONE)
    kind = Kind.DIVERGENCE if finding.situation.startswith("divergent") else RECORDED[finding.kind]
    return dict.fromkeys(("place", "group", "commits"), 0) | {
        "hazard": int(Hazard[finding.hazard or "NONE"]),
        "flags": int(FindingFlags.SAME_WARP) if situation.startswith("no-warp-sync") else 0,
        "site": sites[0] if sites else 0,
        "other_site": sites[-1] if sites else 0,
        "kind": int(kind),
        "reason": int(reason),
        "operation": operation,
        "own_operation": operation,
    }
