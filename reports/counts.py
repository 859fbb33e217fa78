"""Counts in words, alike in all formats and messages: `1 time`, `64 times in 2 CTAs`, `4 to 7`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from consan.reports.model import Finding


def seen(finding: Finding) -> str:
    """`64 times in 2 CTAs`. In a kernel with clusters the device counts clusters."""
    clusters = any(access.cluster_rank is not None for access in finding.accesses)
    where = f" in {plural(finding.ctas, 'cluster' if clusters else 'CTA')}" if finding.ctas else ""
    return plural(finding.count, "time") + where


def plural(number: int, one: str, many: str | None = None) -> str:
    """`1 time`, `1,234 times`: all formats print counts alike."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def some(names: Sequence[str], one: str) -> str:
    """`k`, or `k and 2 other kernels`."""
    return names[0] if len(names) == 1 else f"{names[0]} and {plural(len(names) - 1, f'other {one}')}"


def runs(numbers: Iterable[int]) -> list[str]:
    """Numbers in ascending order as `0`, `2` and `4 to 7`."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][-1] + 1:
            found[-1].append(number)
        else:
            found.append([number])
    return [text for run in found for text in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run))]
