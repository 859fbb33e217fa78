"""The words of a finding: the situation that fits is chosen from the catalogue and filled in.

A kind has situations: which edge is missing decides `missing` and `fix`, and sometimes the sentence and the severity. A
situation may be written for one operation and one hazard: "name:OPERATION/HAZARD" is looked up first, then "name:OPERATION",
"name/HAZARD" and "name". "name@SHAPE" comes before all of them: accesses of one statement, or of two iterations of a loop. `describe`
fills a finding's words in; the decoder calls it once for each finding, so that every renderer says the same.

Not decided here: whether something is a finding, and of which kind (the shadow runtime does), or how it is printed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from consan.reports import frameworks
from consan.reports.catalogue import KINDS
from consan.reports.model import Access, AsyncInfo, Finding
from consan.reports.situations import COMMITS, GENERAL, SIGNALLED, WAITS, Kind, Situation

__all__ = ["GENERAL", "KINDS", "WAITS", "describe", "infer", "place", "select", "words_of"]

def describe(
    finding: Finding, situation: str | None = None, shape: str = "", *, framework: str = frameworks.CUDA, **facts: Any
) -> Finding:
    """The finding with severity, message, missing and fix filled in, in the words of a framework (frameworks.py).

    `shape`: how the two accesses lie in the program (`ordering.py`), where that is worth a wording of its own. `facts` are what the
    accesses do not tell: `leave` (the largest N of a wait_group that would cover the copy), `barrier` ("named barrier 1"), `phase`,
    `parity`, `expected` and `tx` of an mbarrier, `lacking` (what a deadlock waits for), `registers` ("%f1, %f2"), `point`, `came` and
    `others` (a divergence), `shared_bytes`, `bytes` (a phrase).
    """
    kind = KINDS[finding.kind]
    action = _operation(finding)
    name = refined(finding, situation)
    chosen = select(kind, name, finding.hazard, action.kind if action else "", shape)
    words = words_of(finding, facts, framework)
    return replace(
        finding,
        severity=chosen.severity or kind.severity,
        policy=chosen.policy,
        message=frameworks.tidy((chosen.message or kind.message).format_map(words)),
        missing=frameworks.tidy(chosen.missing.format_map(words)),
        fix=frameworks.tidy(chosen.fix.format_map(words)) + _advice(chosen, kind, framework),
        situation=name,
    )


def _advice(chosen: Situation, kind: Kind, framework: str) -> str:
    """A note asks for nothing."""
    return "" if chosen.severity == "note" else frameworks.advice(framework, kind.id)


def refined(finding: Finding, situation: str | None) -> str:
    """The device tells only that an edge is missing; the accesses tell which of several wordings fits."""
    between_operations = len(finding.accesses) > 1 and all(access.asynchronous for access in finding.accesses)
    if situation in (None, "no-barrier") or (situation == "no-warp-sync" and between_operations):
        return infer(finding)
    return situation


def select(kind: Kind, situation: str, hazard: str | None, operation: str = "", shape: str = "") -> Situation:
    """The row for a situation, that of the shape, operation and hazard first; a name that the kind does not have is the general row."""
    special, shaped = f"{situation}:{operation}", f"{situation}@{shape}"
    names = (f"{shaped}/{hazard}", shaped, f"{special}/{hazard}", special, f"{situation}/{hazard}", situation, GENERAL)
    return next(kind.situations[name] for name in names if name in kind.situations)


def _first(finding: Finding) -> Access:
    return finding.accesses[0]


def _last(finding: Finding) -> Access:
    return finding.pair[-1]


def _one_atomic(finding: Finding) -> bool:
    return len({"atomic" in access.role for access in finding.accesses}) == 2


def _same_warp(finding: Finding) -> bool:
    first, last = _first(finding), _last(finding)
    return first.warp is not None and (first.block, first.warp) == (last.block, last.warp)


def _operation(finding: Finding) -> AsyncInfo | None:
    """The operation that the words are about: (1) of a missing wait, else the one there is."""
    return next((access.asynchronous for access in finding.accesses if access.asynchronous), None)


def _engine(finding: Finding) -> bool:
    """Whether (2) is a bulk copy or a matrix product: what orders it is more than a barrier of the CTA."""
    action = _last(finding).asynchronous
    return action is not None and action.kind != "cp.async"


# Tried in order for a finding whose situation the decoder does not give. Cluster first: its CTAs have equal warp numbers.
_INFERENCES: Final[dict[str, tuple[tuple[str, Callable[[Finding], bool]], ...]]] = {
    "data-race": (
        ("cluster", lambda f: _first(f).block != _last(f).block and not _engine(f)),
        # Not a matter of lanes, unless the device says so.
        ("loads-overlap", lambda f: _engine(f) and f.hazard == "WAW" and _first(f).asynchronous is not None),
        ("refilled-too-early", lambda f: _engine(f) and f.hazard == "WAR"),
        ("operation-unordered", _engine),
        ("no-warp-sync", _same_warp),
        ("atomic", _one_atomic),
        ("same-site", lambda f: _first(f).statement == _last(f).statement),
        ("no-barrier", lambda f: True),
    ),
    "missing-wait": (
        ("overlapping-copies", lambda f: len(f.accesses) > 1 and all(access.asynchronous for access in f.accesses)),
        ("not-waited", lambda f: True),
    ),
    "uninitialized-read": (("written-later", lambda f: len(f.accesses) > 1), ("operation", _engine)),
    "out-of-bounds": (("range", lambda f: _engine(f) and _first(f).space == "shared"), ("shared", lambda f: _first(f).space == "shared"),),
    "lifetime": (("exit", lambda f: _first(f).asynchronous is not None),),
}


def infer(finding: Finding) -> str:
    """The situation, from the accesses alone."""
    rules = _INFERENCES.get(finding.kind, ()) if finding.accesses else ()
    return next((name for name, holds in rules if holds(finding)), GENERAL)


# --- the words of the templates ----------------------------------------------------------------------------------------

_VERBS: Final = {"read": "read", "write": "write"}


def place(access: Access) -> str:
    """`kernel.cu:14`, or the PTX line where there is no source line."""
    if access.line:
        return f"{access.file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{access.line}"
    return f"PTX line {access.ptx_line}" if access.ptx_line else "an unknown place"


def words_of(finding: Finding, facts: dict[str, Any], framework: str = frameworks.CUDA) -> dict[str, str]:
    """Every word that a template may use; given facts win over what the accesses tell."""
    words = _access_words(finding) if finding.accesses else dict.fromkeys(_ACCESS_WORDS, "an unknown place")
    operation = words["operation"]
    given = {name: str(value) for name, value in facts.items() if value is not None}
    unknown = {
        "leave": "0",
        "barrier": "the barrier",
        "phase": "of the copy",
        "parity": "(phase & 1)",
        "expected": "its init",
        "tx": "not 0",
        "lacking": "a signal",
        "registers": "registers",
        "shared_bytes": "less",
        "point": "the instruction",
        "came": "some lanes",
        "others": "others do not",
    }
    base = {**unknown, "bytes": _bytes_phrase(finding), **words, **given}
    wait = WAITS.get(operation, WAITS["cp.async"])
    if operation in SIGNALLED:
        base["group"] = "phase {phase} of {barrier}".format_map(base)
    return {
        "wait": wait.format_map(base),
        "wait_name": wait.split()[0],
        **{name: word.format_map(base) for name, word in frameworks.words_of(framework, operation).items()},
        "commit": COMMITS.get(operation, COMMITS["cp.async"]),
        **base,
    }


_ACCESS_WORDS: Final = ("first_at", "second_at", "first_role", "second_role", "second_role_verb", "operation", "group")


def _access_words(finding: Finding) -> dict[str, str]:
    first, last = _first(finding), _last(finding)
    action = _operation(finding)
    group = "it" if action is None or action.group is None else f"group {action.group}"
    return dict(
        zip(
            _ACCESS_WORDS,
            (place(first), place(last), first.role, last.role, _VERBS.get(last.role, "touch"), action.kind if action else "copy", group),
            strict=True,
        )
    )


def _bytes_phrase(finding: Finding) -> str:
    """`4 bytes at offset 128 of tile`, as far as it is known: what the first access touched, not the union over all."""
    if not finding.accesses:
        return "bytes of memory"
    access = _first(finding)
    name = (finding.buffer and finding.buffer.name) or f"{access.space} memory"
    if access.bytes is None:
        return f"bytes of {name}"
    begin, end = access.bytes
    if access.name:
        joint = ", " if access.name[0].isdigit() else " at "  # `4 bytes, 0 bytes past the end of ...`
        return access.name if access.name.startswith("byte") else f"{_count_bytes(end - begin)}{joint}{access.name}"
    where = f"offset {begin} of {name}" if access.space == "shared" else f"{access.space} address {begin:#x}"
    return f"{_count_bytes(end - begin)} at {where}"


def _count_bytes(number: int) -> str:
    return f"{number:,} byte{'s' * (number != 1)}"
