"""The HTML page in a real browser: no console message, no request, axe-core's rules, keyboard, filter, copying, both widths and schemes.

Needs Chromium on the system and the extra `browser`; skipped, visibly, where either is missing.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import report_samples as samples

from consan.reports.formats import html as page
from consan.reports.model import Report
from consan.reports.verdict.conclusion import assemble

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
if CHROMIUM is None:
    pytest.skip("no Chromium on this machine (CHROMIUM names one)", allow_module_level=True)
playwright_api = pytest.importorskip("playwright.sync_api", reason="needs the extra 'browser'")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs the extra 'browser'")

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
WIDTHS = (1280, 400)
SCHEMES = ("light", "dark")


def _everything() -> Report:
    """All findings of the samples on one page."""
    reports = [samples.violations(), samples.deadlock(), samples.operations(), samples.shapes()]
    findings = [finding for report in reports for finding in report.findings]
    return assemble(device="cpu", findings=findings, kernels=[samples.KERNEL], checked=samples.CHECKED, command=samples.COMMAND)


REPORTS = {"clean": samples.clean, "incomplete": samples.incomplete, "everything": _everything}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """Opens a report; at the end nothing may have been said on the console or asked of a network."""
    said: list[str] = []
    contexts = []

    def opened(report: Report, width: int = 1280, scheme: str = "light", **options: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **options)
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.on("request", lambda request: None if request.url.startswith("file:") else said.append(request.url))
        file = tmp_path / "report.html"
        file.write_text(page.render(report), encoding="utf-8")
        tab.goto(file.as_uri())
        return tab

    yield opened
    for context in contexts:
        context.close()
    assert said == []


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", REPORTS)
def test_no_rule_of_axe_is_broken_and_nothing_is_wider_than_the_window(open_page: Any, name: str, width: int, scheme: str) -> None:
    tab = open_page(REPORTS[name](), width, scheme)
    tab.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    violations = axe.Axe().run(tab).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in violations] == []


@pytest.mark.parametrize(("width", "shown", "hidden"), [(1280, ".wide", ".narrow"), (400, ".narrow", ".wide")])
def test_one_picture_is_shown_and_its_text_stays_inside_and_large_enough(open_page: Any, width: int, shown: str, hidden: str) -> None:
    tab = open_page(_everything(), width)
    assert tab.locator(f"figure {hidden} >> visible=true").count() == 0
    assert tab.locator(f"figure {shown} >> visible=true").count() == tab.locator("figure").count() > 8
    heights = tab.evaluate(f"[...document.querySelectorAll('figure {shown} text')].map(each => each.getBoundingClientRect().height)")
    assert min(heights) >= 10
    outside = tab.evaluate(
        f"""[...document.querySelectorAll('figure {shown} svg')].flatMap(svg => {{
          const frame = svg.getBoundingClientRect();
          return [...svg.querySelectorAll('text')].filter(text => {{
            const box = text.getBoundingClientRect();
            return box.left < frame.left - 2 || box.right > frame.right + 2;
          }}).map(text => text.textContent);
        }})"""
    )
    assert outside == []


def test_texts_in_a_picture_do_not_lie_on_each_other(open_page: Any) -> None:
    for width in WIDTHS:
        tab = open_page(_everything(), width)
        over = tab.evaluate(
            """[...document.querySelectorAll('figure svg')].filter(svg => svg.getBoundingClientRect().width).flatMap(svg => {
              const all = [...svg.querySelectorAll('text')].map(text => [text.textContent, text.getBoundingClientRect()]), found = [];
              all.forEach(([a, p], i) => all.slice(i + 1).forEach(([b, q]) => {
                const wide = Math.min(p.right, q.right) - Math.max(p.left, q.left);
                const high = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
                if (wide > 1 && high > 4) found.push(a + ' | ' + b);
              }));
              return found;
            })"""
        )
        assert over == []


def test_the_filter_hides_cards_and_rows_of_the_index(open_page: Any) -> None:
    tab = open_page(_everything())
    total = tab.locator("article").count()
    tab.select_option("#by-kind", "deadlock")
    assert tab.locator("article >> visible=true").count() == tab.locator(".index li >> visible=true").count() == 2
    tab.select_option("#by-kind", "")
    tab.select_option("#by-severity", "warning")
    assert 0 < tab.locator("article >> visible=true").count() < total
    tab.select_option("#by-severity", "")
    tab.fill("#by-text", "wgmma registers")
    assert tab.locator("article >> visible=true").get_attribute("data-kind") == "register-hazard"
    assert tab.locator("#shown").inner_text() == f"1 of {total} shown"


def test_a_copy_button_copies(open_page: Any) -> None:
    tab = open_page(samples.violations(), permissions=["clipboard-read", "clipboard-write"])
    tab.click("button[data-what='Command']")
    tab.wait_for_function("document.getElementById('said').textContent === 'Command copied'")
    assert tab.evaluate("navigator.clipboard.readText()") == shlex.join(samples.COMMAND)


def test_without_javascript_everything_is_shown(open_page: Any) -> None:
    tab = open_page(_everything(), java_script_enabled=False)
    assert tab.locator("article >> visible=true").count() == tab.locator("article").count()
    assert tab.locator("button >> visible=true").count() == tab.locator("#filter >> visible=true").count() == 0
    assert tab.locator(".copy code").first.inner_text() == shlex.join(samples.COMMAND)


def test_the_keyboard_reaches_everything_in_reading_order(open_page: Any) -> None:
    tab = open_page(samples.violations())
    seen: list[tuple[str, float]] = []
    place = """(() => {
      const focused = document.activeElement, box = focused.getBoundingClientRect();
      return [focused.tagName, box.top + scrollY, box.width > 0];
    })()"""
    for _ in range(200):
        tab.keyboard.press("Tab")
        tag, top, visible = tab.evaluate(place)
        if tag == "BODY":
            break
        assert visible
        seen.append((tag, top))
    tags = [tag for tag, _ in seen]
    assert tags[0] == "A"  # to the findings
    assert {"A", "BUTTON", "INPUT", "SELECT", "PRE", "SUMMARY"} <= set(tags)
    assert tags.count("SUMMARY") == tab.locator("summary").count()
    # The way through a card goes down its left column, then down the picture's.
    outside_cards = [top for tag, top in seen[1:] if tag in ("BUTTON", "INPUT", "SELECT", "A")]
    assert outside_cards == sorted(outside_cards)
