"""The documentation in a browser: each page opens without a warning on the console, no network is asked, and the search finds words.

Needs Chromium on the system and the extras `browser` and `docs`; skipped, visibly, where one is missing.
"""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_site import site  # noqa: F401  (the fixture)

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
if CHROMIUM is None:
    pytest.skip("no Chromium on this machine (CHROMIUM names one)", allow_module_level=True)
playwright_api = pytest.importorskip("playwright.sync_api", reason="needs the extra 'browser'")

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
NARROW = {"width": 400, "height": 900}


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing: the tests read the browser's console."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:  # noqa: F811
    """Where a server of this machine has the site."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def tab(address: str) -> Iterator[Any]:
    """A page; at the end no warning may stand on the console, and nothing may have been asked of another host."""
    said = list[str]()
    with playwright_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        opened = browser.new_page(viewport=NARROW)
        opened.on("console", lambda message: said.append(message.text) if message.type in ("warning", "error") else None)
        opened.on("pageerror", lambda error: said.append(str(error)))
        opened.on("request", lambda request: None if request.url.startswith((address, "data:")) else said.append(request.url))
        yield opened
        browser.close()
    assert said == []


def test_every_page_opens(site: Path, address: str, tab: Any) -> None:  # noqa: F811
    pages = sorted(file.relative_to(site).as_posix() for file in site.rglob("*.html") if file.name != "404.html")
    assert len(pages) > 20
    for page in pages:
        answer = tab.goto(address + page)
        assert (page, answer.status) == (page, 200)
        assert tab.locator("h1").count() + tab.locator("h2").count() > 0, page
        assert tab.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], page


def test_the_search_finds_a_kind(address: str, tab: Any) -> None:
    tab.goto(f"{address}search.html?q=missing-wait")
    found = tab.locator("#mkdocs-search-results article")
    found.first.wait_for(timeout=10_000)
    assert any("KINDS" in (each.get_attribute("href") or "") for each in tab.locator("#mkdocs-search-results a").all())
