"""Whether consan and the oracle agree on a kernel, and in what they differ.

Every finding must be a pair of the oracle's with a kind that is right for it, and the verdicts must be the same. The other way
round, a pair of the oracle's that consan does not name is `shadowed` if consan reports one of its sites in another pair: shadow
memory keeps the last write of a byte and some reads since, so of three accesses that race it names two. Anything else is `missed`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from oracle_checker import LIFETIME, PROXY, RACE, UNINIT, Verdict


@dataclass
class Agreement:
    """Counts of pairs, and sentences about what is wrong."""

    exact: int = 0
    shadowed: int = 0
    overwritten: int = 0
    severity: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    false: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> list[str]:
        """What is to be explained."""
        return self.missed + self.false


def _lines(finding: Any) -> frozenset[int]:
    return frozenset(access.ptx_line for access in finding.accesses)


def compare(verdict: Verdict, report: Any) -> Agreement:
    """Hold a report against the oracle's verdict."""
    result = Agreement()
    findings = [finding for finding in report.findings if finding.severity != "note"]
    for finding in findings:
        _judge(finding, verdict, result)
    _look_for_missing(verdict, findings, result)
    verdicts = "clean" if verdict.clean else "violations"
    if report.verdict not in (verdicts, "incomplete"):
        result.missed.append(f"verdict {report.verdict}, the oracle's is {verdicts}")
    return result


def _judge(finding: Any, verdict: Verdict, result: Agreement) -> None:
    lines = _lines(finding)
    found = verdict.pairs.get(lines)
    if finding.kind == UNINIT:
        if not lines & verdict.maybe_uninitialized:
            result.false.append(f"{finding.kind} at {sorted(lines)}")
        return
    if finding.kind == LIFETIME and (found := next((verdict.pairs.get(frozenset((line,))) for line in lines), None)) is not None:
        return
    if finding.kind == PROXY and (found is None or PROXY not in found.kinds) and lines in verdict.overwritten:
        result.overwritten += 1  # regressions/fence_after_arrive.ptx
    elif found is None or finding.kind not in found.kinds:
        result.false.append(f"{finding.kind} {finding.severity} at {sorted(lines)}, the oracle has {found}")
    elif found.severity != finding.severity:
        result.severity.append(f"{finding.kind} {finding.severity} at {sorted(lines)}, the oracle has {found}")


def _look_for_missing(verdict: Verdict, findings: list[Any], result: Agreement) -> None:
    named, sites = {_lines(f) for f in findings}, {line for f in findings for line in _lines(f)}
    unwritten = {line for f in findings if f.kind == UNINIT for line in _lines(f)}
    for pair, found in verdict.pairs.items():
        if pair in named or (RACE in found.kinds and pair & unwritten):
            result.exact += 1
        elif pair & sites:
            result.shadowed += 1
        else:
            result.missed.append(f"{sorted(found.kinds)} {found.severity} at {sorted(pair)}, bytes {found.bytes}")
    told = {byte for line, missing in verdict.uninitialized.items() if line in unwritten for byte in missing}
    for line, missing in verdict.uninitialized.items():
        if line in sites:
            result.exact += 1
        elif missing <= told:  # a byte is said to be unwritten once
            result.shadowed += 1
        else:
            result.missed.append(f"{UNINIT} at {line}")
