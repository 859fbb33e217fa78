"""Tensor memory in reports: the names of its cells. The words are in tensor_rows.py.

A place is `TMEM[lanes 0..127, columns 0..63] of the allocation at gemm.cu:40`. Operations are named by their issue.
"""

from __future__ import annotations

from typing import Final

from consan.instrument.findings import FindingFlags, FindingRecord
from consan.reports.records.finding_records import ModuleSites
from consan.reports.words.wording import place_of

SPACE: Final = "tensor"  # of an Access


def in_tensor_memory(found: FindingRecord) -> bool:
    """Whether a finding is about cells of tensor memory."""
    return FindingFlags.TENSOR in found.flags


def cells_of(found: FindingRecord, module: ModuleSites) -> str:
    """The cells of a finding, and the place of their allocation."""
    address, begin = found.address, found.offset
    alloc = module.site(address >> 32)
    cells = f"TMEM[lanes {address & 255}..{(address >> 8 & 255) - 1}, columns {begin}..{begin + found.bytes - 1}]"
    return cells if alloc is None else f"{cells} of the allocation at {place_of(alloc)}"


def role_of(opcode: str) -> str:
    """`tcgen05.mma` or `clusterlaunchcontrol.try_cancel` of an opcode; empty for other families."""
    parts = opcode.split(".")
    return ".".join(parts[:2]) if parts[0] in ("tcgen05", "clusterlaunchcontrol") else ""
