"""Whether consan and the oracle agree on a kernel, and in what they differ.

Every finding must be a pair of the oracle's with a kind that is right for it, and the verdicts must be the same. The other way
round, a pair of the oracle's that consan does not name is one of

  shadowed  consan names another pair that shares a site and bytes with it: shadow memory keeps the last write of a byte and some reads
            since, so of three accesses that race it names two
  merged    the oracle does not find it either (or with another kind, or as a warning only) where lanes of a warp share a clock: consan
            knows of a warp's lanes that have not released anything themselves only when they wait or meet at a barrier
  missed    anything else

Severities: `mild` where consan says warning, the oracle error, and neither of the two explains it; `severity` for all other differences.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from oracle_verdict import GLOBAL, LIFETIME, MISUSE, RACE, UNINIT, WAIT, Found, Verdict

Pair = frozenset[int]


@dataclass
class Agreement:
    """Counts of pairs, and sentences about what is wrong."""

    exact: int = 0
    shadowed: list[str] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    severity: list[str] = field(default_factory=list)
    mild: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    false: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> list[str]:
        """What is to be explained."""
        return self.missed + self.false + self.mild


def _lines(finding: Any) -> Pair:
    return frozenset(access.ptx_line for access in finding.pair)


def _hides(named: dict[Pair, Found], pair: Pair, found: Found) -> bool:
    return any(pair & other and found.touches(it) for other, it in named.items())


def _is_divergence(finding: Any) -> bool:
    return finding.kind == MISUSE and any(waiter.get("why") == "came" for waiter in finding.waiters)


@dataclass
class _Comparison:
    verdict: Verdict
    findings: list[Any]
    result: Agreement = field(default_factory=Agreement)

    def __post_init__(self) -> None:
        pairs = self.verdict.pairs
        self.merged = self.verdict.merged or self.verdict
        self.reported = {_lines(f) for f in self.findings}
        self.named = {pair: found for pair, found in pairs.items() if pair in self.reported}
        self.errors = {lines: pairs[lines] for f in self.findings if f.severity == "error" and (lines := _lines(f)) in pairs}

    def judge(self, finding: Any) -> None:
        """One finding of consan's."""
        lines, result = _lines(finding), self.result
        found = self.verdict.pairs.get(lines)
        if finding.kind in self.verdict.kinds:  # of the whole launch
            result.exact += 1
        elif finding.kind == UNINIT:
            if not lines & self.verdict.maybe_uninitialized:
                result.false.append(f"{finding.kind} at {sorted(lines)}")
        elif finding.kind == LIFETIME and any(LIFETIME in self._kinds(frozenset((line,))) for line in lines):
            pass
        elif found is None or finding.kind not in found.kinds:
            text = f"{finding.kind} {finding.severity} at {sorted(lines)}, the oracle has {found}"
            merged = self.merged.pairs.get(lines)
            (result.merged if found and merged and finding.kind in merged.kinds else result.false).append(text)
        elif found.severity != finding.severity:
            self._judge_severity(finding, found)

    def _kinds(self, pair: Pair) -> set[str]:
        return self.verdict.pairs.get(pair, Found()).kinds

    def _judge_severity(self, finding: Any, found: Found) -> None:
        lines, result = _lines(finding), self.result
        merged = self.merged.pairs.get(lines, Found())
        where = result.mild
        copied = WAIT in found.kinds and found.within and _stores_one_value(finding)  # the oracle does not know what copies bring
        if found.severity == "warning" or copied or _hides(self.errors, lines, found):
            where = result.severity
        elif merged.severity != "error":
            where = result.merged
        where.append(f"{finding.kind} {finding.severity} at {sorted(lines)}, the oracle has {found}")

    def judge_divergences(self, findings: list[Any]) -> None:
        """One divergent point of each program that has some must be reported, and no point of another program."""
        result, points = self.result, {line for lines in self.verdict.divergent for line in lines}
        told = {min(_lines(finding), key=lambda line: line not in points) for finding in findings}
        result.false += [f"divergence at {line}, the oracle has {sorted(points)}" for line in told - self.verdict.undefined]
        for group in self.verdict.divergences:
            lines = {line for pair in group for line in pair}
            if told.isdisjoint(lines):
                result.missed.append(f"divergence at {sorted(lines)}")
            else:
                result.exact += 1

    def look_for_missing(self) -> None:
        """What consan has not found."""
        result, unwritten = self.result, {line for f in self.findings if f.kind == UNINIT for line in _lines(f)}
        for pair, found in self.verdict.pairs.items():
            if pair <= self.verdict.undefined and pair not in self.reported:
                continue
            text = f"{sorted(found.kinds)} {found.severity} at {sorted(pair)}, bytes {sorted(found.spans)[:4]}"
            # A copy in flight at the exit is not told of where a missing wait is.
            told = any(pair & r for r in self.reported) or any(f.kind == WAIT for f in self.findings)
            known = (RACE in found.kinds and pair & unwritten) or (LIFETIME in found.kinds and told)
            if pair in self.reported or known:
                result.exact += 1
            elif _hides(self.named, pair, found):
                result.shadowed.append(text)
            else:
                (result.missed if pair in self.merged.pairs or found.within else result.merged).append(text)
        self._look_for_uninitialised(unwritten)

    def _look_for_uninitialised(self, unwritten: set[int]) -> None:
        result, sites = self.result, {line for lines in self.reported for line in lines}
        told = {byte for line, missing in self.verdict.uninitialized.items() if line in unwritten for byte in missing}
        for line, missing in self.verdict.uninitialized.items():
            if line in self.verdict.undefined and line not in sites:
                continue
            if line in sites:
                result.exact += 1
            elif missing <= told:  # a byte is said to be unwritten once
                result.shadowed.append(f"{UNINIT} at {line}")
            else:
                result.missed.append(f"{UNINIT} at {line}")


def _is_judged(finding: Any) -> bool:
    """Notes are for values that nobody uses, which the oracle does not know; and for stores of one value, which it does."""
    return bool(finding.severity != "note" or _stores_one_value(finding))


def _stores_one_value(finding: Any) -> bool:
    return finding.kind in (RACE, GLOBAL) and "store the same value" in finding.message


def _in_words_of_the_oracle(finding: Any) -> Any:
    """Stores of one value are a warning to the oracle, whether of one instruction or of two."""
    return replace(finding, severity="warning") if finding.severity == "note" else finding


def compare(verdict: Verdict, report: Any) -> Agreement:
    """Hold a report against the oracle's verdict."""
    divergences = [finding for finding in report.findings if _is_divergence(finding)]
    others = [finding for finding in report.findings if not _is_divergence(finding)]
    comparison = _Comparison(verdict, [_in_words_of_the_oracle(finding) for finding in others if _is_judged(finding)])
    for finding in comparison.findings:
        comparison.judge(finding)
    comparison.judge_divergences(divergences)
    comparison.look_for_missing()
    result, wanted = comparison.result, "clean" if verdict.clean else "violations"
    if report.verdict not in (wanted, "incomplete") and not (report.verdict == "clean" and comparison.merged.clean):
        result.missed.append(f"verdict {report.verdict}, the oracle's is {wanted}")
    return result
