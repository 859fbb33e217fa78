"""The page: well formed, self-contained, escaped, complete without its script, and readable. test_report_browser.py opens it."""

from __future__ import annotations

import html
import re
from base64 import b64encode
from dataclasses import replace
from datetime import datetime, timezone
from hashlib import sha256
from html.parser import HTMLParser
from importlib import metadata

import pytest
import report_samples as samples

from consan.reports.formats import highlight, html as page
from consan.reports.formats.html_style import SCRIPT, STYLE
from consan.reports.model import Frame, RanTest, Report
from consan.reports.timeline import build
from consan.reports.verdict.combination import combine
from consan.reports.verdict.suppression import Rule, suppress

REPORTS = {name: getattr(samples, name)() for name in ("clean", "violations", "incomplete", "deadlock", "operations", "shapes")}
VOID = {"meta", "input"}
NOW = datetime(2026, 1, 2, 3, 4, tzinfo=timezone.utc)


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
    assert not any({"src", "onclick", "style"} & attributes.keys() for _, attributes in reader.elements)
    links = [attributes["href"] or "" for _, attributes in reader.elements if "href" in attributes]
    assert {link[0] for link in links} == {"#"}
    assert {link[1:] for link in links} <= set(ids)
    policy = next(meta["content"] for meta in reader.named("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    hashes = [re.search(f"<{name}>(.*?)</{name}>", text, re.DOTALL) for name in ("style", "script")]
    style, script = (b64encode(sha256(found[1].encode()).digest()).decode() for found in hashes if found)
    assert policy == f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'"
    assert reader.named("html") == [{"lang": "en"}]
    assert f"consan: {report.verdict}" in reader.text


def test_every_finding_is_there_with_both_excerpts_and_a_row_of_the_index() -> None:
    report = samples.violations()
    reader = Reader(page.render(report))
    assert [article["data-kind"] for article in reader.named("article")] == [finding.kind for finding in report.findings]
    assert not any("hidden" in article for article in reader.named("article"))
    offered = {option["value"] for option in reader.named("option")} - {""}
    assert offered == {finding.kind for finding in report.findings} | {finding.severity for finding in report.findings}
    rows = [row["id"] for row in reader.named("li") if "id" in row]
    assert rows == [f"i-{article['id']}" for article in reader.named("article")]
    for piece in (
        "tile[t] = in[blockIdx.x * 256 + t];",
        "if (t < s) tile[t] += tile[t + s];",
        "thread (32,0,0), warp 1 lane 0",
        "1,234 times",
    ):
        assert piece in reader.text
    assert "consan check reduce.cu --grid 64" in reader.text
    assert sum(attributes.get("class") == "row hit" for _, attributes in reader.elements) == sum(len(f.accesses) for f in report.findings)


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


def test_the_head_says_version_date_device_and_seed() -> None:
    reader = Reader(page.render(samples.violations(), NOW))
    assert f"device NVIDIA H200consan {metadata.version('consan')}seed 7page of 2026-01-02 03:04 UTC" in reader.text
    assert page.render(samples.violations(), NOW) == page.render(samples.violations(), NOW)


def test_the_headline_says_what_was_found() -> None:
    assert "Nothing found; 1 kernel, 3 launches on cpu" in Reader(page.render(samples.clean())).text
    assert "2 errors, 1 warning, 1 note; 2 kernels" in Reader(page.render(samples.violations())).text


def test_an_inlining_chain_is_folded_and_outermost_last() -> None:
    frames = (Frame("inner", "a.cu", 3, 1), Frame("outer", "a.cu", 9, 1))
    race = replace(samples.RACE, accesses=(samples.WRITE, replace(samples.READ, inlined=frames)))
    text = page.render(replace(samples.violations(), findings=(race,)))
    chain = re.search(r"<details><summary>Inlined through 2 calls</summary><ol>(.*?)</ol></details>", text)
    assert chain is not None
    assert re.findall(r"in (\w+), inlined", chain[1]) == ["inner", "outer"]


def test_commands_and_suppressions_can_be_copied_and_selected() -> None:
    text = page.render(samples.violations())
    buttons = [button for button in Reader(text).named("button") if "data-what" in button]
    assert all("hidden" in button and button["aria-label"] == f"Copy: {button['data-what']}" for button in buttons)
    assert [button["data-what"] for button in buttons] == ["Command"] + ["Suppression", "Comment"] * 4
    assert '[[tool.consan.suppressions]] kind = "data-race" kernel = "reduce" source = "reduce.cu"' in Reader(text).text
    quiet = suppress(samples.violations(), [Rule("data-race", "all store 1", "k.cu:4", in_source=True)])
    assert page.render(quiet).count('data-what="Comment"') == sum(finding.suppressed is None for finding in quiet.findings)


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_every_picture_has_a_name_a_caption_and_a_table(report: Report) -> None:
    text = page.render(report)
    reader = Reader(text)
    figures = re.findall(r"<figure.*?</figure>", text, re.DOTALL)
    assert len(figures) == sum(build(finding) is not None for finding in report.findings)
    for figure in figures:
        assert figure.count("<svg ") == figure.count('role="img" aria-label="Timeline. ') == 2
        assert figure.count("<figcaption id=") == figure.count("<details><summary>The same as a table</summary>") == 1
        assert figure.count('<th scope="col">') == 5
    scrolling = [attributes for tag, attributes in reader.elements if tag == "pre" or attributes.get("class") == "scroll"]
    assert all(each.get("tabindex") == "0" and each.get("role") == "group" and each.get("aria-label") for each in scrolling)


def test_the_table_says_what_the_picture_shows() -> None:
    text = page.render(replace(samples.violations(), findings=(samples.WAIT,)))
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr.*?</tr>", text)[1:]]
    assert rows == [
        ["1", "thread (1,0,0), warp 0 lane 1, CTA (3,0,0)", "(1) asynchronous copy cp.async.cg.shared.global", "PTX line 99", ""],
        ["2", "cp.async copies, generic proxy", "in flight, group 2", "", "step 1 (issues)"],
        ["", "missing", samples.WAIT.missing],
        ["3", "thread (32,0,0), warp 1 lane 0, CTA (0,0,0)", "(2) read ld.shared.f32", "PTX line 75", "not ordered after step 2"],
        ["4", "cp.async copies, generic proxy", "may end only now", "", ""],
    ]


def test_source_has_syntax_colours_and_stays_the_same_text() -> None:
    texts = ["#pragma unroll", 'for (int i = 0; i < n; i++) x["<b>"] = 1.5f;  // a & b', "", "\t}"]
    for file in ("k.cu", "k.py", "k.ptx", "k.unknown", ""):
        shown = highlight.lines(texts, file)
        assert [html.unescape(re.sub(r"<[^>]*>", "", line)) for line in shown] == texts
    assert '<span class="k">for</span>' in highlight.lines(texts, "k.cu")[1]
    assert "<span" not in "".join(highlight.lines(texts, "k.unknown"))
    assert {f".{style} {{ color:" for style in highlight.classes()} <= set(re.findall(r"\.\w+ \{ color:", STYLE))


def test_the_script_uses_what_the_page_has() -> None:
    ids = {attributes["id"] for _, attributes in Reader(page.render(samples.violations())).elements if "id" in attributes}
    assert set(re.findall(r'one\("([\w-]+)"\)', SCRIPT)) <= ids


def _luminance(colour: str) -> float:
    digits = "".join(digit * 2 for digit in colour) if len(colour) == 3 else colour
    channels = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, two: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


#: Which texts stand on which backgrounds, and which lines.
TEXTS = {
    "paper": "ink quiet link",
    "card": "ink quiet link error warning note clean one two",
    "soft": "ink quiet keyword string number builtin",
    "bad": "ink error warning",
    "good": "ink clean",
    "first": "ink quiet one keyword string number builtin",
    "second": "ink quiet two keyword string number builtin",
}
LINES = {"card": "rule error one two quiet", "soft": "rule", "bad": "error", "first": "one", "second": "two"}


@pytest.mark.parametrize("scheme", [1, 2], ids=["light", "dark"])
@pytest.mark.parametrize(("pairs", "least"), [(TEXTS, 4.5), (LINES, 3.0)], ids=["texts", "lines"])
def test_texts_and_lines_can_be_seen_on_their_backgrounds(scheme: int, pairs: dict[str, str], least: float) -> None:
    """WCAG 2, level AA: a contrast of 4.5 to 1 for text, 3 to 1 for what is drawn."""
    colours = dict(re.findall(r"--([a-z]+):\s+#([0-9a-f]+)", STYLE.split(":root")[scheme].split("}")[0]))
    assert len(colours) == 22
    for background, names in pairs.items():
        for name in names.split():
            assert _contrast(colours[name], colours[background]) >= least, (name, background)
