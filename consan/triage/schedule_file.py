"""A schedule on disk: `consan.schedule/1` (schema in consan.reports.schema), what `consan reduce` writes and `consan replay` reads.

It holds all that a run needs beside the files it names: subject, baseline, decisions, outcome, and hashes, so that a replay of
another kernel is an error.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from consan._errors import UsageError
from consan.backends.cpu.engine.decisions import BASELINES, KINDS, Decision, Who
from consan.dataclass import dataclass
from consan.files import read_file
from consan.launching.arguments import Dim3
from consan.reports.formats.json_format import lacking
from consan.triage import subject as subjects, words
from consan.triage.minimise import Failure
from consan.triage.outcome import DecisionWords, Json, Outcome, key_of

SCHEMA: Final = "consan.schedule/1"


@dataclass(frozen=True)
class Stored:
    """The part of the file that a replay needs."""

    subject: subjects.Subject
    failure: Failure
    seed: int
    baseline: str
    decisions: tuple[Decision, ...]
    kernels: tuple[str, ...]
    result: str
    consan: str


def write(subject: subjects.Subject, failure: Failure, baseline: str, decisions: Sequence[Decision], outcome: Outcome, **more: Any) -> Json:
    """The document."""
    described = outcome.described or tuple(DecisionWords() for _ in decisions)
    return {
        "schema": SCHEMA,
        "name": subject.label,
        "subject": subjects.to_json(subject),
        "failure": asdict(failure),
        "seed": outcome.seed,
        "baseline": {"name": baseline, "words": words.baseline(baseline)},
        "decisions": [_decision(decision, each) for decision, each in zip(decisions, described, strict=True)],
        "outcome": {
            "result": outcome.result,
            "ended": outcome.ended,
            "differences": outcome.differences,
            "findings": sorted(key_of(finding) for finding in outcome.findings),
        },
        "kernels": list(outcome.kernels),
        **more,
    }


def _decision(decision: Decision, described: DecisionWords) -> Json:
    return {
        "words": words.describe(decision, described),
        "kind": decision.kind,
        "launch": decision.launch,
        "place": decision.place,
        "lines": list(decision.lines),
        "steps": decision.steps,
        "who": [_who(who) for who in decision.who],
        "receiver": None if decision.receiver is None else list(decision.receiver),
        "over": None if decision.over is None else {"place": decision.over[0], **_who(decision.over[1])},
        "where": asdict(described.place) if described.place else None,
        "until": asdict(described.until) if described.until else None,
    }


def _who(who: Who) -> Json:
    return {"block": list(who.block), "warp": who.warp, "lanes": who.lanes, "nth": who.nth}


def load(name: str) -> Json:
    """A document of consan stress or consan reduce."""
    try:
        data = json.loads(read_file(name))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is not JSON: {error}") from None
    if not isinstance(data, dict) or "schema" not in data:
        raise UsageError(f"{name} is not a file of consan stress or consan reduce")
    return data


@contextlib.contextmanager
def refused(name: str, schema: str) -> Iterator[None]:
    """Inside the block a document that is not as its schema says raises UsageError."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise UsageError(f"{name} is not a valid {schema}: {lacking(error)}") from None


def parse(name: str, data: Json) -> Stored:
    """A schedule's document; UsageError if it is not one."""
    with refused(name, SCHEMA):
        found = Stored(
            subject=subjects.from_json(data["subject"]),
            failure=Failure(**data["failure"]),
            seed=int(data["seed"]),
            baseline=data["baseline"]["name"],
            decisions=tuple(_read_decision(each) for each in data["decisions"]),
            kernels=tuple(data["kernels"]),
            result=data["outcome"]["result"],
            consan=data.get("consan", ""),
        )
    if found.baseline not in BASELINES or any(decision.kind not in KINDS for decision in found.decisions):
        raise UsageError(f"{name} is not a valid {SCHEMA}: a baseline or a decision of an unknown kind")
    return found


def _read_decision(data: Json) -> Decision:
    over = data["over"]
    return Decision(
        kind=data["kind"],
        who=tuple(_read_who(each) for each in data["who"]),
        steps=int(data["steps"]),
        place=int(data["place"]),
        lines=tuple(data["lines"]),
        over=None if over is None else (int(over["place"]), _read_who(over)),
        receiver=None if data.get("receiver") is None else _read_block(data["receiver"]),
        launch=int(data["launch"]),
    )


def _read_who(data: Json) -> Who:
    return Who(_read_block(data["block"]), int(data["warp"]), int(data["lanes"]), int(data["nth"]))


def _read_block(data: Sequence[int]) -> Dim3:
    x, y, z = data
    return int(x), int(y), int(z)
