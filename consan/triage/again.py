"""Turns a stored document back into runs. The subject must be unchanged, and the text that runs must be the one of the decisions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from consan import options
from consan._errors import UsageError
from consan.reports.formats.json_format import lacking
from consan.reports.verdict.suppression import Rule
from consan.triage import campaign, schedule_file, subject as subjects
from consan.triage.executors import Workers
from consan.triage.minimise import failure_of
from consan.triage.outcome import FAILURES, REFUSED, Job, Json, Outcome, Request
from consan.triage.schedule_file import Stored

KNOWN: Final = (campaign.SCHEMA, schedule_file.SCHEMA)


def any_document(name: str) -> Json:
    """A campaign or a schedule."""
    data = schedule_file.load(name)
    if data["schema"] not in KNOWN:
        raise UsageError(f"{name} holds {data['schema']}, expected {' or '.join(KNOWN)}")
    return data


def stress_document(name: str) -> Json:
    """A campaign."""
    data = any_document(name)
    if data["schema"] != campaign.SCHEMA:
        raise UsageError(f"{name} holds {data['schema']}, expected {campaign.SCHEMA}: what consan stress stored")
    return data


def job_again(name: str, data: Json, rules: Sequence[Rule] = ()) -> Job:
    """The job of a document, in its folder, if its files are unchanged."""
    try:
        subject = subjects.from_json(data["subject"])
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{name} is not a valid {data['schema']}: {lacking(error)}") from None
    if subject.device != "cpu":
        raise UsageError(f"{name} is of a GPU, whose schedules cannot be repeated: run consan stress --device cpu")
    stored = os.path.abspath(name)
    try:
        os.chdir(subject.folder)
    except OSError as error:
        raise UsageError(f"{name} was written in {subject.folder}: {error.strerror or error}") from None
    subjects.check_unchanged(subject, os.path.relpath(stored))
    if not isinstance(subject, subjects.KernelSubject):
        return Job(subject, "", tuple(rules))
    source, ptx = subject.source, subject.source.compile()
    if subjects.hash_ptx(ptx) != source.ptx_hash:
        raise UsageError(f"{source.file} compiles to another PTX than when {name} was written (a header or the compiler has changed)")
    return Job(subject, ptx, tuple(rules))


def stored_of(name: str, data: Json, seed: str | None) -> Stored:
    """The schedule of a document. For a campaign: the failing seed and its schedule."""
    if data["schema"] == schedule_file.SCHEMA:
        if seed is not None:
            raise UsageError("--seed: is for a file of consan stress; this is one schedule")
        return schedule_file.parse(name, data)
    with schedule_file.refused(name, data["schema"]):
        return _in_campaign(name, data, seed)


def _in_campaign(name: str, data: Json, seed: str | None) -> Stored:
    """A failing seed of a campaign, and its schedule."""
    failure, seeds = failure_of(data, None)
    chosen = seeds[0] if seed is None else options.read_count(seed)
    row = next((row for row in data["results"] if chosen in row["seeds"]), None)
    if row is None:
        raise UsageError(f"--seed: {name} does not list the result of seed {chosen}")
    subject = subjects.from_json(data["subject"])
    return Stored(subject, failure, chosen, "", (), tuple(data["kernels"]), row["result"], data["consan"])


def replay(job: Job, stored: Stored, times: int) -> list[Outcome]:
    """The runs. UsageError if another text ran than that of the decisions, or if nothing ran."""
    decisions = stored.decisions if stored.baseline else None
    request = Request(stored.seed, decisions=decisions, baseline=stored.baseline, whole=True)
    with Workers(0) as workers:
        outcomes = [outcome for _, outcome in workers.results(job, [request] * times)]
    first = outcomes[0]
    if first.status == REFUSED or first.status in FAILURES:
        raise UsageError(f"the run failed: {first.status}: {first.detail}")
    if first.kernels != stored.kernels:
        raise UsageError(
            f"the kernels that ran are not those of the stored schedule (made by consan {stored.consan}): run consan stress again"
        )
    return outcomes
