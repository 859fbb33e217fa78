"""The page: well formed, self-contained, escaped, complete without its script, and readable."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
import report_samples as samples

from consan.reports import html as page
from consan.reports.combine import combine
from consan.reports.model import RanTest, Report
from consan.reports.suppress import Rule, suppress

REPORTS = {name: getattr(samples, name)() for name in ("clean", "violations", "incomplete", "deadlock", "operations")}
VOID = {"meta", "input"}


class Reader(HTMLParser):
    """Checks that tags nest; keeps elements, ids and text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_the_page_is_well_formed_and_needs_nothing_else(report: Report) -> None:
    text = page.render(report)
    reader = Reader(text)
    ids = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    named = [attributes["aria-labelledby"] for _, attributes in reader.elements if "aria-labelledby" in attributes]
    assert set(named) <= set(ids)
    assert not re.search(r"https?://|@import|url\(", text)
    assert not any({"src", "href", "onclick"} & attributes.keys() for _, attributes in reader.elements)
    assert reader.named("html") == [{"lang": "en"}]
    assert f"consan: {report.verdict}" in reader.text


def test_every_finding_is_there_with_both_excerpts_and_a_checkbox_for_its_kind() -> None:
    report = samples.violations()
    reader = Reader(page.render(report))
    assert [article["data-kind"] for article in reader.named("article")] == [finding.kind for finding in report.findings]
    assert not any("hidden" in article for article in reader.named("article"))
    assert {box["value"] for box in reader.named("input")} == {finding.kind for finding in report.findings}
    for piece in (
        "tile[t] = in[blockIdx.x * 256 + t];",
        "if (t < s) tile[t] += tile[t + s];",
        "thread (32,0,0), warp 1 lane 0",
        "1,234 times",
    ):
        assert piece in reader.text
    assert "consan check reduce.cu --grid 64" in reader.text
    assert sum(attributes.get("class") == "hit" for _, attributes in reader.elements) == sum(len(f.accesses) for f in report.findings)


def test_gaps_suppressions_and_tests_are_shown() -> None:
    assert all(reason in Reader(page.render(samples.incomplete())).text for reason in samples.incomplete().incomplete)
    quiet = suppress(samples.violations(), [Rule("data-race", "all store 1", "k.cu:4", in_source=True)])
    assert "Suppressed: all store 1 (k.cu:4)" in Reader(page.render(quiet)).text
    tested = combine([samples.clean()], tests=(RanTest("test_a.py::test_b", "passed", "clean", 3),))
    assert "test_a.py::test_b passed clean 3" in " ".join(" ".join(Reader(page.render(tested)).texts).split())


def test_what_comes_from_a_report_is_escaped() -> None:
    evil = "<script>alert(1)</script>&\"'"
    race = replace(samples.RACE, kernel=evil, message=evil, missing=evil)
    accesses = tuple(replace(access, file=evil, role=evil, op=evil) for access in race.accesses)
    report = replace(samples.violations(), findings=(replace(race, accesses=accesses),), notes=(evil,), sources={evil: {5: evil, 8: evil}})
    text = page.render(report)
    assert text.count("<script>") == 1
    assert html.escape(evil) in text
    assert evil in "".join(Reader(text).texts)


def _luminance(colour: str) -> float:
    digits = colour * 2 if len(colour) == 3 else colour
    channels = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_texts_can_be_read_on_both_backgrounds(scheme: int) -> None:
    """WCAG 2, level AA: a contrast of 4.5 to 1."""
    block = page._STYLE.split(":root")[scheme + 1].split("}")[0]
    colours = dict(re.findall(r"--([a-z]+): #([0-9a-f]+)", block))
    for name in ("ink", "quiet", "error", "warning", "note", "clean", "one", "two"):
        for background in ("paper", "soft"):
            light, dark = sorted((_luminance(colours[name]), _luminance(colours[background])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (name, background)
