"""Why a session checked no launch, with the names of the kernels that were there.

The text follows `model.NOTHING_RAN` in the report's reasons; it is empty where there was no kernel at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from consan.suggest import listed, nearest

if TYPE_CHECKING:
    from consan.options import KernelFilter


@dataclass(frozen=True)
class Launches:
    """What a session saw: launches that its filters left out, how many of them `--kernel-name` lets through, kernels without a launch."""

    kernel_filter: KernelFilter | None
    skip: int
    let_through: int
    left_out: Mapping[str, int]
    idle: Sequence[str]


def why_nothing(seen: Launches) -> str:
    """One sentence, or ""."""
    if seen.left_out and seen.kernel_filter is not None and not seen.let_through:
        return _no_match(seen.kernel_filter, seen.left_out)
    if seen.left_out:
        return f"--launch-skip {seen.skip} leaves out every launch (of {listed(seen.left_out)})"
    return f"these were compiled only: {listed(seen.idle)}" if seen.idle else ""


def _no_match(kernel_filter: KernelFilter, left_out: Mapping[str, int]) -> str:
    mode, _, wanted = kernel_filter.text.partition("=")
    close = nearest(wanted.strip("^$.*") if mode == "regex" else wanted, left_out)
    hint = f" (did you mean kns={close}?)" if close else ""
    return f"--kernel-name {kernel_filter.text} matches none of the kernels that ran: {listed(left_out)}{hint}"
