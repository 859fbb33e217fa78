"""The report as SARIF 2.1.0 (OASIS), for code scanning services and editors.

A finding becomes a result. Both accesses are locations (viewers show the first one) and the two threads of a code flow.
They and the culprit are related locations, which the text links to. Rules are the kinds, with their pages as help. Gaps in
the check are notifications, so that a run without results does not look clean.

Fingerprints survive when lines move: they hash the kind, the kernel, and for each access its file, action and line
text. Findings with equal fingerprints are numbered.

Findings without a source line (PTX without line information) have only a logical location, which GitHub does not show.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Iterator
from importlib import metadata
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import quote

from consan.reports.catalogue.catalogue import KINDS
from consan.reports.catalogue.pages import markdown, page
from consan.reports.catalogue.situations import CatalogueEntry
from consan.reports.counts import seen
from consan.reports.model import Access, Finding, Frame, Report, Suppressed
from consan.reports.source.places import waiting_places
from consan.reports.source.sources import Sources

VERSION: Final = "2.1.0"
SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT: Final = "%SRCROOT%"
FINGERPRINT: Final = "consanAccesses/v1"

Json = dict[str, Any]


def render(report: Report) -> str:
    """SARIF text with a final newline. File names below the working directory are relative to it."""
    return json.dumps({"$schema": SCHEMA, "version": VERSION, "runs": [_run(report)]}, indent=1) + "\n"


def _run(report: Report) -> Json:
    writer = _Writer(report)
    return {
        "tool": {"driver": {"name": "consan", **_version(), "rules": [_rule(kind) for kind in KINDS.values()]}},
        "originalUriBaseIds": {ROOT: {"uri": _folder_uri(os.getcwd())}},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(report)],
        "results": list(writer.results()),
        "properties": {
            "verdict": report.verdict,
            "device": report.device,
            "seed": report.seed,
            "checked": list(report.checked),
            "not_checked": list(report.not_checked),
        },
    }


def _version() -> Json:
    try:
        return {"version": metadata.version("consan")}
    except metadata.PackageNotFoundError:
        return {}


def _rule(kind: CatalogueEntry) -> Json:
    name = "".join(word.capitalize() for word in kind.id.split("-"))
    return {
        "id": kind.id,
        "name": name,
        "shortDescription": {"text": kind.title},
        "fullDescription": {"text": page(kind.id).split("\n\n")[1].replace("\n", " ")},
        "help": {"text": page(kind.id), "markdown": markdown(kind.id)},
        "defaultConfiguration": {"level": kind.severity},
        "properties": {"tags": ["gpu", "concurrency"]},
    }


def _invocation(report: Report) -> Json:
    texts = [("warning", f"incomplete: {reason}") for reason in report.incomplete] + [("note", note) for note in report.notes]
    notices = [{"level": level, "message": {"text": text}} for level, text in texts]
    command = {"commandLine": shlex.join(report.command)} if report.command else {}
    return {**command, "executionSuccessful": True, "exitCode": report.exit, "toolExecutionNotifications": notices}


class _Writer:
    """The results of one run. It numbers findings that look the same."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._sources = Sources(report)
        self._index = {kind: index for index, kind in enumerate(KINDS)}
        self._seen: dict[str, int] = {}

    def results(self) -> Iterator[Json]:
        suppressing = any(finding.suppressed for finding in self._report.findings)
        for finding in self._report.findings:
            yield self._result(finding) | ({"suppressions": _suppressions(finding.suppressed)} if suppressing else {})

    def _result(self, finding: Finding) -> Json:
        locations = [self._location(finding, access, number) for number, access in enumerate(finding.accesses)]
        places = locations[: len(finding.pair)]
        where = {"locations": places or self._waits(finding) or [{"logicalLocations": [_kernel(finding)]}]}
        related = {"relatedLocations": [place | {"id": number} for number, place in enumerate(locations, 1)]} if len(locations) > 1 else {}
        return {
            "ruleId": finding.kind,
            "ruleIndex": self._index[finding.kind],
            "level": finding.severity,
            "message": {"text": _message(finding)},
            **where,
            **related,
            **({"codeFlows": [self._flow(finding, places)]} if places else {}),
            "partialFingerprints": {FINGERPRINT: self._fingerprint(finding)},
            "occurrenceCount": finding.count,
            "properties": _properties(finding),
        }

    def _waits(self, finding: Finding) -> list[Json]:
        """The places at which threads wait: a viewer that knows lines only shows a deadlock there."""
        return [self._location(finding, access) for access in waiting_places(finding) if access.file and access.line]

    def _location(self, finding: Finding, access: Access, number: int | None = None) -> Json:
        text = ("" if number is None else f"({number + 1}) ") + ": ".join(filter(None, (access.role, access.op)))
        named: Json = {"message": {"text": text}, "logicalLocations": [_kernel(finding)]}
        return named if not (access.file and access.line) else {"physicalLocation": self._physical(access), **named}

    def _physical(self, place: Access | Frame) -> Json:
        region: Json = {"startLine": place.line}
        if place.column:
            region["startColumn"] = place.column
        line = self._sources.line(place.file, place.line)
        if line is not None:
            region["snippet"] = {"text": line}
        return {"artifactLocation": _artifact(place.file), "region": region}

    def _flow(self, finding: Finding, places: list[Json]) -> Json:
        """Each access is a thread flow, preceded by its inlined calls."""
        flows = []
        for number, (access, place) in enumerate(zip(finding.pair, places, strict=True), 1):
            calls = [self._call(frame) for frame in reversed(access.inlined) if frame.file and frame.line]
            last = place if access.innermost is None else place | {"physicalLocation": self._physical(access.innermost)}
            steps = [{"location": step} for step in (*calls, last)]
            flows.append({"id": f"({number}) {_thread(access)}", "locations": steps})
        return {"message": {"text": finding.message}, "threadFlows": flows}

    def _call(self, frame: Frame) -> Json:
        return {
            "physicalLocation": self._physical(frame),
            "message": {"text": f"calls {frame.function or 'a function'}, which was inlined"},
        }

    def _fingerprint(self, finding: Finding) -> str:
        accesses = sorted(self._trait(access) for access in finding.pair)
        digest = hashlib.sha256("\x1f".join((finding.kind, finding.kernel, *accesses)).encode()).hexdigest()[:32]
        number = self._seen[digest] = self._seen.get(digest, 0) + 1
        return f"{digest}:{number}"

    def _trait(self, access: Access) -> str:
        """The properties of an access that do not change when lines are inserted above it."""
        line = self._sources.line(access.file, access.line) if access.file and access.line else None
        text = access.op if line is None else " ".join(line.split())
        return "\x1e".join((PurePosixPath(access.file.replace("\\", "/")).name, access.role, text))


def _message(finding: Finding) -> str:
    text = finding.message[:1].upper() + finding.message[1:] + "."
    numbers = [f"[({number})]({number})" for number in range(1, len(finding.accesses) + 1)]
    links = "" if len(numbers) < 2 else f" See {', '.join(numbers[:-1])} and {numbers[-1]}."
    missing = f" Missing: {finding.missing}." if finding.missing else ""
    fix = f" Fix: {finding.fix}." if finding.fix else ""
    return _escaped(text + missing + fix) + links


def _escaped(text: str) -> str:
    """Escape brackets, which make links in a message."""
    return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")


def _thread(access: Access) -> str:
    triples = (("CTA", access.block), ("thread", access.thread))
    named = [f"{name} ({','.join(map(str, value))})" for name, value in triples if value is not None]
    return " ".join(named) or access.role


def _kernel(finding: Finding) -> Json:
    return {"name": finding.kernel, "kind": "function"}


def _properties(finding: Finding) -> Json:
    named = {"hazard": finding.hazard, "ctas": finding.ctas, "policy": finding.policy, "tests": list(finding.tests) or None}
    occurrences = seen(finding) if finding.ctas else "in the text of the kernel"
    return {name: value for name, value in named.items() if value is not None} | {"seen": occurrences}


def _suppressions(suppressed: Suppressed | None) -> list[Json]:
    if suppressed is None:
        return []
    kind = "inSource" if suppressed.in_source else "external"
    return [{"kind": kind, "status": "accepted", "justification": suppressed.reason, "properties": {"by": suppressed.by}}]


def _artifact(file: str) -> Json:
    """The artifact of a file. Below the working directory its path is relative, so that it is valid on every machine."""
    path, here = file.replace("\\", "/"), os.getcwd().replace("\\", "/").rstrip("/") + "/"
    if path.startswith(here):
        path = path[len(here) :]
    if path.startswith("/") or path[1:3] == ":/":
        return {"uri": "file://" + quote(path if path.startswith("/") else "/" + path, safe="/:")}
    return {"uri": quote(path, safe="/"), "uriBaseId": ROOT}


def _folder_uri(folder: str) -> str:
    path = folder.replace("\\", "/").strip("/")
    return "file:///" + (quote(path, safe="/:") + "/" if path else "")
