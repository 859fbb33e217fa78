"""Builds the finding for a warp-synchronous instruction that some lanes of a warp do not reach.

(1) is the instruction. (2) is where the other lanes are: at a similar instruction, past it, or nowhere, because they have exited. If
lanes of one warp wait at two instructions, (1) is the first in the text. `waiters` says who came and who did not,
with lane masks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from consan.instrument.findings import Parted, Split
from consan.instrument.sites import Site
from consan.reports.counts import runs
from consan.reports.model import Access, Finding
from consan.reports.words import frameworks
from consan.reports.words.wording import describe, place

TOGETHER: Final = "warp-synchronous instruction"
ELSEWHERE: Final = "where the other lanes are"
_ADVICE: Final = {
    "barrier": "divergent",
    "warp-barrier": "divergent-mask",
    "warp-collective": "divergent-mask",
}


def divergence(finding: Finding, split: Split, site: Site | None, framework: str = frameworks.CUDA) -> Finding:
    """Fill in the words and the waiters. The accesses are (1) and, unless the others have exited, (2)."""
    first = finding.accesses[0]
    point = _name_of(site, framework)
    warp = f"warp {first.warp} of CTA ({','.join(map(str, first.block or ()))})"
    others = _where(finding, split)
    accesses = (first, *(replace(access, role=ELSEWHERE) for access in finding.accesses[1:]))
    if split.how != Parted.PAST and len(accesses) > 1:
        accesses = (first, replace(accesses[1], role=first.role))
    finding = replace(finding, accesses=accesses, waiters=tuple(_waiters(accesses, split)))
    facts = {"point": point, "came": f"{lanes_phrase(split.came)} of {warp}", "others": f"{lanes_phrase(split.others)} {others}"}
    if point == frameworks.words_of(framework, "")["cta_barrier_ptx"]:
        facts["counted"] = "all threads of the CTA"
    return describe(finding, _ADVICE.get(site.family if site else "", "divergent-warp"), framework=framework, **facts)


def executed_in_part(finding: Finding, came: int) -> Finding:
    """The lanes known when the virtual machine meets an instruction that part of a warp executes."""
    first = finding.accesses[0]
    warp = f"warp {first.warp} of CTA ({','.join(map(str, first.block or ()))})"
    finding = replace(finding, waiters=(_waiter(first, first, came, "came"),))
    facts = {"point": first.op, "came": f"{lanes_phrase(came)} of {warp}", "others": "the others do not"}
    return describe(finding, "divergent-warp", **facts)


def _where(finding: Finding, split: Split) -> str:
    """The end of a sentence, which says what the other lanes do."""
    verb = "has" if split.others.bit_count() == 1 else "have"
    if split.how == Parted.EXITED:
        return f"{verb} exited"
    there = place(finding.accesses[-1])
    if split.how == Parted.PAST:
        tail = f", and {verb} exited" if split.exited == split.others else ""
        return f"went past it, to {there}{tail}"
    return f"{'is' if verb == 'has' else 'are'} at {finding.accesses[-1].op.partition(';')[0]} at {there}"


def _waiters(accesses: tuple[Access, ...], split: Split) -> Iterable[dict[str, Any]]:
    yield _waiter(accesses[0], accesses[0], split.came, "came")
    exited = split.how == Parted.EXITED or split.exited == split.others
    why = "exited" if exited else "went past it" if split.how == Parted.PAST else "waits elsewhere"
    yield _waiter(accesses[0], accesses[-1] if len(accesses) > 1 else None, split.others, why)


def _waiter(who: Access, where: Access | None, lanes: int, why: str) -> dict[str, Any]:
    waiter: dict[str, Any] = {"block": list(who.block or ()), "warp": who.warp, "lanes": lanes, "why": why}
    if who.cluster_rank is not None:
        waiter["cluster_rank"] = who.cluster_rank
    if where is not None:
        waiter |= {"file": where.file, "line": where.line, "column": where.column, "ptx_line": where.ptx_line, "ptx": where.ptx}
    return waiter


def _name_of(site: Site | None, framework: str) -> str:
    """`__syncthreads() (bar.sync 0)`: the instruction in the framework's words."""
    if site is None:
        return "the instruction"
    if not site.row.is_cta_barrier:
        return site.opcode
    text = site.ptx.rstrip(";").partition("//")[0].strip()
    text = text.partition(" ")[2] if text.startswith("@") else text
    return frameworks.words_of(framework, "")["cta_barrier_ptx"] if text == "bar.sync 0" else text


def lanes_phrase(mask: int) -> str:
    """`lanes 0 to 15`, `lane 3`, `lanes 0, 2, 4 to 7`."""
    lanes = (lane for lane in range(32) if mask >> lane & 1)
    return f"lane{'s' * (mask.bit_count() != 1)} {', '.join(runs(lanes))}"
