"""Turns hazards found in a kernel's text into findings, with the same words and fields as those of a run.

It decides roles, the asynchronous side and the situation (`kinds.py`). Such a hazard has no thread, no CTA and no count: it
is on some path of every kernel that can reach the function. Whether the kernel was launched is not checked here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from consan.instrument.sites import Place, StaticFinding
from consan.reports.model import Access, AsyncInfo, Finding
from consan.reports.source.places import culprit_at, distinct, located
from consan.reports.words import frameworks
from consan.reports.words.wording import describe, place, words_of

_SERIALISED: Final = "ptxas will serialise the wgmma pipeline here ({}), which hides the error and costs speed"
# The end of the message, and the fix, for a wait nearby that does not cover (1).
_THIRD: Final = {
    "late": (
        "the wgmma.wait_group at {third_at} comes only after the {second_role}",
        "move the wgmma.wait_group at {third_at} before {second_at}",
    ),
    "short": (
        "the wgmma.wait_group {number} at {third_at} leaves it in flight",
        "wait with {wait} ({wait_cpp}) at {third_at} instead of {number}",
    ),
}
_SHOWN: Final = 4  # registers named; a tile has up to 128


def static_findings(
    hazards: Iterable[StaticFinding], kernels: Iterable[str] | None = None, framework: str = frameworks.CUDA
) -> list[Finding]:
    """One finding for each hazard and kernel that can reach it, in the words of a framework. `kernels` selects kernels."""
    wanted = None if kernels is None else set(kernels)
    return [_finding(hazard, name, framework) for hazard in hazards for name in hazard.kernels if wanted is None or name in wanted]


def _finding(hazard: StaticFinding, kernel: str, framework: str) -> Finding:
    alone = hazard.first == hazard.second
    sides = [(hazard.first, hazard.first_role), *([] if alone else [(hazard.second, hazard.second_role)])]
    space = "register" if hazard.kind == "register-hazard" else "shared"
    accesses = distinct(tuple(_access(at, role, space) for at, role in sides))
    finding = Finding(hazard.kind, kernel, hazard=hazard.hazard or None, accesses=accesses)
    situation = "never-fenced" if alone and hazard.reason == "no-fence" else hazard.reason
    finding, facts = _with_third(finding, hazard)
    described = describe(finding, situation, framework=framework, **facts)
    if hazard.third_role in _THIRD:
        message, fix = (frameworks.tidy(text.format_map(words_of(finding, facts, framework))) for text in _THIRD[hazard.third_role])
        advice = frameworks.advice(framework, finding.kind)
        described = replace(described, message=f"{described.message}; {message}", fix=fix + advice)
    return replace(described, message=f"{described.message}; {_SERIALISED.format(hazard.serialised)}") if hazard.serialised else described


def _with_third(finding: Finding, hazard: StaticFinding) -> tuple[Finding, dict[str, Any]]:
    """The finding with the wait or fence nearby, if there is one, and the facts for the words."""
    facts: dict[str, Any] = {"leave": hazard.leave, "registers": _named(hazard)}
    if hazard.third is None:
        return finding, facts
    culprit = culprit_at(hazard.third)
    culprit = distinct((*finding.accesses, culprit))[-1]
    facts |= {"third_at": place(culprit), "number": hazard.third.ptx.rstrip(";").split()[-1]}
    return replace(finding, accesses=(*finding.accesses, culprit)), facts | {"fence_at": f" at {place(culprit)}"}


def _access(at: Place, role: str, space: str) -> Access:
    matrix = role.startswith("wgmma")
    return Access(
        role=role,
        op=at.opcode,
        proxy="async" if matrix else "generic",
        asynchronous=AsyncInfo("wgmma") if matrix else None,
        space=space,
        **located(at),
    )


def _named(hazard: StaticFinding) -> str:
    """`an accumulator (PTX %f9)`, `A fragments (PTX %r7, %r8)`: the source has no such names."""
    registers = hazard.registers
    shown, more = ", ".join(registers[:_SHOWN]), len(registers) - _SHOWN
    word = "accumulator" if "wgmma accumulator" in (hazard.first_role, hazard.second_role) else "A fragment"
    listed = f"{shown} and {more} more" if more > 0 else shown
    return f"{word}s (PTX {listed})" if len(registers) > 1 else f"an {word} (PTX {listed})"
