"""The stored form of a run: `consan.report/1`, written and read (JSON Schema: reports/schema).

Keys of the schema keep their names and places. New keys are additions, and files without them stay readable. Reading
checks the schema's name and the type of each field of the dataclasses (shapes.py). It does no full schema
validation: that needs a package that is not a dependency. The tests do it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any, Final

from consan import late
from consan.reports.catalogue.catalogue import KINDS
from consan.reports.formats.shapes import ShapeError, check
from consan.reports.model import (
    SCHEMA,
    SEVERITIES,
    VERDICTS,
    Access,
    AllLaunchesProof,
    AsyncInfo,
    Buffer,
    Cost,
    Dim3,
    Finding,
    FixStep,
    Frame,
    KernelSummary,
    RanTest,
    Report,
    Schedules,
    Suppressed,
    Uninstrumented,
    Unmodelled,
    VerifiedFix,
)
from consan.reports.racing_value import Outcomes, RacingValue, UsedAt
from consan.reports.verdict.coverage import by_kernel, schedule_sentence
from consan.reports.words.values import outcomes_sentence, value_sentence
from consan.reports.words.verified import sentence_of

SCHEMA_FILE: Final = "consan.report-1.json"

Json = dict[str, Any]

_NUMBERS: Final = ("warp", "lanes", "threads", "line", "column", "ptx_line", "cluster_rank", "barrier")
_WAITER: Final = {**dict.fromkeys(_NUMBERS, int | None), **dict.fromkeys(("why", "file", "ptx"), str | None)}  # fields of one
_WORDS: Final = {"severity": SEVERITIES, "kind": KINDS, "policy": ("default", "isa")}  # of a finding's fields


class ReportError(ValueError):
    """The text is not a stored run; the message says why."""


def schema(name: str = SCHEMA_FILE) -> Json:
    """A JSON Schema (draft 2020-12) shipped with the package; default: `consan.report/1`. Kinds of findings are those of the catalogue."""
    text = resources.files("consan.reports.schema").joinpath(name).read_text(encoding="utf-8")
    loaded: Json = json.loads(text)
    if name == SCHEMA_FILE:
        loaded["$defs"]["finding"]["properties"]["kind"]["enum"] = list(KINDS)
    return loaded


def dumps(report: Report) -> str:
    """The report as indented JSON text with a final newline."""
    return json.dumps(to_json(report), indent=1) + "\n"


def loads(text: str) -> Report:
    """The report stored in `text`. Raises ReportError if it is not one."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise ReportError(f"not JSON: {error}") from None
    except RecursionError:
        raise ReportError("not a stored run: its values are nested too deeply") from None
    return from_json(data)


# --- writing -----------------------------------------------------------------------------------------------------------


def to_json(report: Report) -> Json:
    """Plain dicts and lists, in the order of the contract."""
    return {
        "schema": SCHEMA,
        "verdict": report.verdict,
        "device": report.device,
        "kernels": _kernels_to_json(report),
        "findings": _findings_to_json(report.findings),
        "checked": list(report.checked),
        "uninstrumented": [vars_of(kernel) for kernel in report.uninstrumented],
        "dropped": report.dropped,
        "evicted": report.evicted,
        "exit": report.exit,
        **({"status": report.status} if report.status is not None else {}),
        "seed": report.seed,
        "consan": report.version,
        "not_checked": list(report.not_checked),
        "policy": report.policy,
        "incomplete": list(report.incomplete),
        "notes": list(report.notes),
        "command": list(report.command),
        "sources": {name: {str(number): line for number, line in lines.items()} for name, lines in report.sources.items()},
        **({"tests": [_flat_to_json(test) for test in report.tests]} if report.tests else {}),
        **({"cost": vars_of(report.cost)} if report.cost is not None else {}),
    }


def vars_of(item: Any) -> Json:
    """The fields of a flat dataclass, for classes whose fields need no conversion."""
    return {name: getattr(item, name) for name in item.__dataclass_fields__}


def _flat_to_json(item: Any) -> Json:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in vars_of(item).items()}


def _kernels_to_json(report: Report) -> list[Json]:
    coverage = by_kernel(report)
    return [{**_kernel_to_json(kernel), "coverage": coverage.get(kernel.name, {})} for kernel in report.kernels]


def _kernel_to_json(kernel: KernelSummary) -> Json:
    flat = {name: value for name, value in _flat_to_json(kernel).items() if name not in ("schedules", "proof")}
    known = {"schedules": {"text": schedule_sentence(kernel.schedules), **vars_of(kernel.schedules)}} if kernel.schedules else {}
    known |= {"proof": _flat_to_json(kernel.proof)} if kernel.proof else {}
    return {**flat, "unmodelled": [vars_of(gap) for gap in kernel.unmodelled], **known}


def _findings_to_json(findings: tuple[Finding, ...]) -> list[Json]:
    found = late.precedence.roots(findings)
    return [
        {**finding_to_json(finding), **({"follows": found[index][0]} if index in found else {})} for index, finding in enumerate(findings)
    ]


def finding_to_json(finding: Finding) -> Json:
    """One finding as it stands in a report."""
    return {
        "kind": finding.kind,
        "hazard": finding.hazard,
        "severity": finding.severity,
        "kernel": finding.kernel,
        "message": finding.message,
        "missing": finding.missing,
        "fix": finding.fix,
        "count": finding.count,
        "ctas": finding.ctas,
        "buffer": vars_of(finding.buffer) if finding.buffer else None,
        "accesses": [access_to_json(access) for access in finding.accesses],
        "barrier": finding.barrier,
        "waiters": list(finding.waiters),
        "policy": finding.policy,
        "suppressed": vars_of(finding.suppressed) if finding.suppressed else None,
        **({"situation": finding.situation} if finding.situation else {}),
        **({"cause": finding.cause} if finding.cause else {}),
        **({"tests": list(finding.tests)} if finding.tests else {}),
        **({"verified": _fix_to_json(finding.verified)} if finding.verified else {}),
        **({"seed": finding.seed} if finding.seed is not None else {}),
        **({"unoptimized": True} if finding.unoptimized else {}),
        **({"value": _value_to_json(finding.value)} if finding.value else {}),
        **({"outcomes": {"text": outcomes_sentence(finding.outcomes), **_flat_to_json(finding.outcomes)}} if finding.outcomes else {}),
    }


def _value_to_json(value: RacingValue) -> Json:
    path, addresses = [vars_of(each) for each in value.path], list(value.addresses)
    return {"text": value_sentence(value), "end": value.end, "path": path, **({"addresses": addresses} if addresses else {})}


def _fix_to_json(fix: VerifiedFix) -> Json:
    edits, steps = [list(each) for each in fix.edits], [vars_of(step) for step in fix.steps]
    return {"text": sentence_of(fix), **vars_of(fix), "steps": steps, "edits": edits}


def access_to_json(access: Access) -> Json:
    """One side of a finding as JSON."""
    left_out = ("asynchronous", "inlined", *["rank"] * (access.rank is None))
    data = {name: value for name, value in vars_of(access).items() if name not in left_out}
    lists = {name: _list(data[name]) for name in ("block", "thread", "bytes")}
    return {
        **data,
        **lists,
        "async": _async_to_json(access.asynchronous) if access.asynchronous else None,
        "inlined": [vars_of(frame) for frame in access.inlined],
        "innermost": vars_of(access.innermost) if access.innermost else None,
    }


def _async_to_json(action: AsyncInfo) -> Json:
    return {name: value for name, value in vars_of(action).items() if name != "barrier_name" or value}


def _list(value: tuple[int, ...] | None) -> list[int] | None:
    return None if value is None else list(value)


# --- reading -----------------------------------------------------------------------------------------------------------


def lacking(error: Exception) -> str:
    """The mistake in a document whose reading has raised this error."""
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def from_json(data: Any) -> Report:
    """The report that `to_json` wrote. Unknown keys are ignored."""
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        found = data.get("schema") if isinstance(data, dict) else type(data).__name__
        has = 'it has no "schema"' if found is None else f'expected "schema": "{SCHEMA}", found {found!r}'
        raise ReportError(f"not a stored run: {has}")
    try:
        report = _report_from_json(data)
        check(report, Report, "")
    except ShapeError as error:
        raise ReportError(f"not a valid {SCHEMA}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ReportError(f"not a valid {SCHEMA}: {lacking(error)}") from None
    if report.verdict not in VERDICTS:
        raise ReportError(f"not a valid {SCHEMA}: verdict {report.verdict!r}")
    for index, finding in enumerate(report.findings):
        for name, known in _WORDS.items():
            if getattr(finding, name) not in known:
                raise ReportError(f"not a valid {SCHEMA}: findings[{index}].{name}: there is no {getattr(finding, name)!r}")
    return report


def _report_from_json(data: Json) -> Report:
    return Report(
        verdict=data["verdict"],
        device=data["device"],
        kernels=tuple(map(_kernel_from_json, data["kernels"])),
        findings=tuple(map(finding_from_json, data["findings"])),
        checked=tuple(data["checked"]),
        not_checked=tuple(data.get("not_checked", ())),
        uninstrumented=tuple(_flat(Uninstrumented, item) for item in data["uninstrumented"]),
        dropped=int(data["dropped"]),
        evicted=int(data["evicted"]),
        exit=int(data["exit"]),
        status=data.get("status"),
        seed=int(data["seed"]),
        policy=data.get("policy", "default"),
        version=data.get("consan", ""),
        incomplete=tuple(data.get("incomplete", ())),
        notes=tuple(data.get("notes", ())),
        command=tuple(data.get("command", ())),
        sources={name: {int(number): line for number, line in lines.items()} for name, lines in data.get("sources", {}).items()},
        tests=tuple(_flat(RanTest, test, incomplete=tuple(test.get("incomplete", ()))) for test in data.get("tests", ())),
        cost=_flat(Cost, data["cost"]) if data.get("cost") else None,
    )


def _flat(record: Callable[..., Any], data: Mapping[str, Any], **converted: Any) -> Any:
    """Build a dataclass from its known keys; `converted` values replace them."""
    known: Mapping[str, Any] = record.__dataclass_fields__  # type: ignore[attr-defined]
    return record(**{name: value for name, value in data.items() if name in known} | converted)


def _kernel_from_json(data: Json) -> Any:
    unmodelled = tuple(_flat(Unmodelled, gap) for gap in data["unmodelled"])
    names = ("global_gaps", "global_shapes", "global_missed", "excluded", "missing", "annotations")
    lists = {name: tuple(data.get(name, ())) for name in names}
    schedules = _flat(Schedules, data["schedules"]) if data.get("schedules") else None
    proof = _proof_from_json(data["proof"]) if data.get("proof") else None
    return _flat(KernelSummary, data, unmodelled=unmodelled, schedules=schedules, proof=proof, **lists)


def _proof_from_json(data: Json) -> Any:
    return _flat(
        AllLaunchesProof,
        data,
        block=tuple(data["block"]),
        assumptions=tuple(data["assumptions"]),
        relations=tuple(data.get("relations", ())),
    )


def finding_from_json(data: Json) -> Any:
    """One finding as `finding_to_json` wrote it."""
    return _flat(
        Finding,
        data,
        buffer=_flat(Buffer, data["buffer"]) if data.get("buffer") else None,
        accesses=tuple(map(access_from_json, data["accesses"])),
        waiters=tuple(map(_waiter, data.get("waiters") or ())),
        suppressed=_flat(Suppressed, data["suppressed"]) if data.get("suppressed") else None,
        tests=tuple(data.get("tests") or ()),
        verified=_fix_from_json(data["verified"]) if data.get("verified") else None,
        unoptimized=data.get("unoptimized", False),
        value=_value_from_json(data["value"]) if data.get("value") else None,
        outcomes=_flat(Outcomes, given, values=tuple(given.get("values", ()))) if (given := data.get("outcomes")) else None,
    )


def _value_from_json(data: Json) -> Any:
    return RacingValue(data["end"], tuple(_flat(UsedAt, each) for each in data.get("path", ())), tuple(data.get("addresses", ())))


def _waiter(data: Json) -> Json:
    """Its fields are free, but for those that a renderer computes with."""
    for name in data.keys() & _WAITER.keys():
        check(data[name], _WAITER[name], f"waiters: {name}")
    for name in data.keys() & {"block", "thread"}:
        check(_dim3(data[name]), Dim3, f"waiters: {name}")
    return data


def _fix_from_json(data: Json) -> Any:
    steps = tuple(_flat(FixStep, step) for step in data["steps"])
    return _flat(VerifiedFix, data, steps=steps, edits=tuple((start, end, text) for start, end, text in data.get("edits", ())))


def access_from_json(data: Json) -> Any:
    """One side of a finding."""
    return _flat(
        Access,
        data,
        block=_dim3(data.get("block")),
        thread=_dim3(data.get("thread")),
        bytes=_range(data.get("bytes")),
        asynchronous=_flat(AsyncInfo, data["async"]) if data.get("async") else None,
        inlined=tuple(_flat(Frame, frame) for frame in data.get("inlined") or ()),
        innermost=_flat(Frame, data["innermost"]) if data.get("innermost") else None,
    )


def _dim3(value: list[int] | None) -> Dim3 | None:
    if value is None:
        return None
    x, y, z = value
    return (x, y, z)


def _range(value: list[int] | None) -> tuple[int, int] | None:
    if value is None:
        return None
    begin, end = value
    return (begin, end)
