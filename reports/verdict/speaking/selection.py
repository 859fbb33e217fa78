"""Which findings of a run are reported. Tables, records, ends of launches and texts give several for one defect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from consan.reports.counts import plural
from consan.reports.model import Finding
from consan.reports.records.divergence import ELSEWHERE
from consan.reports.verdict.speaking.precedence import speaking
from consan.reports.verdict.speaking.relations import OF_ENDS


def selected(
    of_hooks: Iterable[Finding],
    of_records: Iterable[Finding],
    of_ends: Sequence[Finding],
    of_texts: Iterable[Finding],
    unknown: Mapping[str, str],
) -> tuple[list[Finding], list[str]]:
    """The findings that are reported, and why others are not, a sentence for each kernel.

    `of_ends`: how launches ended. `unknown`: kernels with an opcode that called hooks do not know: they take accesses for unordered that
    it orders.
    """
    hooked = list(of_hooks)
    found = [*(finding for finding in hooked if finding.kernel not in unknown), *of_records]
    left_out = Counter(finding.kernel for finding in hooked if finding.kernel in unknown)
    gaps = [
        f"{plural(count, 'finding')} in {name} left out: called hooks do not know how {unknown[name]} orders accesses"
        for name, count in left_out.items()
    ]
    return of_one_point([*speaking(of_ends, OF_ENDS, found), *found, *of_texts]), gaps


# --- divergence ------------------------------------------------------------------------------------------------------------


def of_one_point(findings: Iterable[Finding]) -> list[Finding]:
    """One finding for each instruction that a warp reaches in parts.

    A deadlock that follows becomes part of it, because the barriers at which other warps wait are not at fault. A deadlock stays a finding
    of its own if threads of a CTA without such an instruction wait in it.
    """
    found = list(findings)
    kept: dict[tuple[object, ...], Finding] = {}
    for finding in sorted(filter(_is_divergence, found), key=_nearness):
        kept.setdefault(_point_of(finding), finding)
    kernels = {finding.kernel for finding in kept.values()}
    stuck = {finding.kernel for finding in found if finding.kind == "deadlock"}
    rest = [f for f in found if not _is_divergence(f) and not (f.kernel in kernels and _follows(f, kept.values()))]
    return [_with_end(finding, finding.kernel in stuck) for finding in kept.values()] + rest


def _follows(finding: Finding, divergences: Iterable[Finding]) -> bool:
    """Whether each CTA of a deadlock is that of a divergence, or has threads that wait at the places of one."""
    if finding.kind != "deadlock":
        return False
    causes = [waiter for one in divergences if one.kernel == finding.kernel for waiter in one.waiters]
    blocks, lines = {_block_of(waiter) for waiter in causes}, {waiter.get("ptx_line") for waiter in causes} - {None}
    caused = blocks | {_block_of(waiter) for waiter in finding.waiters if waiter.get("ptx_line") in lines}
    return all(_block_of(waiter) in caused or waiter.get("cluster_rank") is not None for waiter in finding.waiters)


def _block_of(waiter: dict[str, Any]) -> tuple[int, ...]:
    return tuple(waiter.get("block", ()))


def _nearness(finding: Finding) -> tuple[bool, int]:
    """Sort order: lanes that went past come before lanes that wait elsewhere; near places come before far ones."""
    return not _went_past(finding), finding.accesses[-1].ptx_line


def _with_end(finding: Finding, stuck: bool) -> Finding:
    return replace(finding, message=f"{finding.message}; so the launch ends in a deadlock") if stuck else finding


def _point_of(finding: Finding) -> tuple[object, ...]:
    return finding.kernel, finding.accesses[0].site


def _went_past(finding: Finding) -> bool:
    return len(finding.accesses) > 1 and finding.accesses[1].role == ELSEWHERE


def _is_divergence(finding: Finding) -> bool:
    return finding.kind == "barrier-misuse" and any(waiter.get("why") == "came" for waiter in finding.waiters)
