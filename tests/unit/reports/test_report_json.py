"""`consan.report/1`: the shipped schema holds for what is written, and what is written can be read back."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import report_samples as samples

from consan.reports.formats import json_format
from consan.reports.model import Report

NAMES = ("clean", "violations", "incomplete", "deadlock", "operations")
REPORTS = {name: getattr(samples, name)() for name in NAMES}
VALIDATOR = jsonschema.Draft202012Validator(json_format.schema())


def test_the_schema_is_a_schema() -> None:
    meta = jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA)
    assert not list(meta.iter_errors(json_format.schema()))


def test_each_field_is_described() -> None:
    assert not list(_undescribed(json_format.schema(), "")), "say what it means, and in which unit"


def _undescribed(schema: dict[str, Any], path: str) -> Iterator[str]:
    for key, field in schema.get("properties", {}).items():
        if "description" not in field and "const" not in field:
            yield f"{path}.{key}"
        yield from _undescribed(field, f"{path}.{key}")
    for key, field in schema.get("$defs", {}).items():
        yield from _undescribed(field, key)
    if isinstance(items := schema.get("items"), dict):
        yield from _undescribed(items, f"{path}[]")


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_what_is_written_is_valid_and_reads_back_equal(report: Report) -> None:
    text = json_format.dumps(report)
    VALIDATOR.validate(json.loads(text))
    assert json_format.loads(text) == report
    assert json_format.dumps(json_format.loads(text)) == text


def test_the_keys_of_the_contract_are_there() -> None:
    data = json_format.to_json(samples.violations())
    assert list(data)[:11] == [
        "schema", "verdict", "device", "kernels", "findings", "checked", "uninstrumented", "dropped", "evicted", "exit", "seed",
    ]  # fmt: skip
    assert list(data["findings"][0]) == [
        "kind", "hazard", "severity", "kernel", "message", "missing", "fix", "count", "ctas", "buffer", "accesses", "barrier", "waiters",
        "policy", "suppressed", "situation",
    ]  # fmt: skip
    expected = {
        "role", "op", "proxy", "file", "line", "column", "ptx_line", "ptx", "block", "cluster_rank",
        "thread", "warp", "lane", "bytes", "async",
    }  # fmt: skip
    assert expected <= set(data["findings"][0]["accesses"][0])
    assert data["findings"][1]["accesses"][0]["async"] == {"kind": "cp.async", "group": 2, "barrier": None, "phase": None}


def test_a_reader_accepts_keys_that_it_does_not_know_and_lacks_that_the_contract_allows() -> None:
    data = json_format.to_json(samples.violations())
    data["later"] = data["findings"][0]["later"] = data["findings"][0]["accesses"][0]["later"] = 1
    for optional in ("policy", "incomplete", "notes", "command", "sources"):
        del data[optional]
    VALIDATOR.validate(data)
    assert json_format.from_json(data).findings == samples.violations().findings


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("verdict",), "maybe"),
        (("verdict",), "clean"),
        (("findings", 0, "kind"), "race"),
        (("findings", 0, "severity"), "fatal"),
        (("findings", 0, "accesses", 0, "thread"), [1, 2]),
        (("findings", 0, "accesses", 0, "lane"), 32),
        (("dropped",), -1),
        (("kernels", 0, "name"), None),
    ],
)
def test_the_schema_rejects_what_is_wrong(path: tuple[Any, ...], value: object) -> None:
    data = json_format.to_json(samples.violations())
    target: Any = data
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    assert list(VALIDATOR.iter_errors(data))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "consan.report/2"}, 'expected "schema": "consan.report/1", found \'consan.report/2\''),
        ({"verdict": "maybe"}, "verdict 'maybe'"),
        ({"kernels": 5}, "'int' object is not iterable"),
        ({"findings": [{}]}, "accesses"),
    ],
)
def test_reading_something_else_says_what_is_wrong(change: dict[str, object], message: str) -> None:
    data = {**copy.deepcopy(json_format.to_json(samples.clean())), **change}
    with pytest.raises(json_format.ReportError, match=message.replace("(", r"\(")):
        json_format.from_json(data)


@pytest.mark.parametrize("text", ["", "[]", "{}", "{", "7"])
def test_reading_no_report_at_all(text: str) -> None:
    with pytest.raises(json_format.ReportError, match="not"):
        json_format.loads(text)
