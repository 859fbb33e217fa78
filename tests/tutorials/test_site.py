"""The documentation as a site: mkdocs makes it without a warning, every link leads somewhere, and it needs no network."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mkdocs", reason="mkdocs is not installed (the extra docs)")
ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "tutorials" / "guide"


def _gathered(folder: Path) -> Any:
    spec = importlib.util.spec_from_file_location("site_of_consan", ROOT / "tutorials" / "site.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    made.gather(folder)
    return made


def _built(folder: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "mkdocs", "build", "-f", str(folder / "mkdocs.yml")]
    return subprocess.run(words, capture_output=True, text=True, timeout=240, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    _gathered(folder)
    done = _built(folder)
    assert done.returncode == 0, done.stderr
    return folder / "site"


class _Page(HTMLParser):
    """The links of a page, what it loads, and its anchors."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links, self.loaded, self.anchors = list[str](), list[str](), set[str]()
        self.feed(file.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors.add(given.get("id") or given.get("name") or "")
        self.links += [given["href"] or ""] if tag == "a" and given.get("href") else []
        self.loaded += [each for each in (given.get("src"), given.get("href") if tag == "link" else None) if each]


def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    pages = {file.resolve(): _Page(file) for file in site.rglob("*.html") if file.name not in ("404.html", "search.html")}
    wrong = []
    for file, page in pages.items():
        for link in (each for each in (*page.links, *page.loaded) if not re.match(r"[a-z]+:", each)):
            path, _, anchor = link.partition("#")
            target = (file.parent / path).resolve() if path else file
            if not target.exists() or (anchor and target in pages and anchor not in pages[target].anchors):
                wrong.append((file.name, link))
    assert len(pages) > 30
    assert wrong == []


def test_the_site_loads_nothing_from_the_network(site: Path) -> None:
    loaded = {each for file in site.rglob("*.html") for each in _Page(file).loaded}
    assert [each for each in loaded if each.startswith(("http", "//"))] == []


def test_the_pages_of_the_guide_and_the_kinds_are_there(site: Path) -> None:
    index = _Page(site / "index.html")
    for page in (page for page in GUIDE.glob("*.md") if page.stem != "README"):
        assert f"tutorials/guide/{page.stem}.html" in index.links, "the contents of the guide have no such row"
    assert {"data-race", "missing-wait"} <= _Page(site / "reports" / "KINDS.html").anchors
    assert "<td><code>--device auto|gpu|cpu</code></td>" in (site / "tutorials" / "guide" / "options.html").read_text()


def test_a_broken_link_is_an_error(tmp_path: Path) -> None:
    _gathered(tmp_path)
    docs = tmp_path / "docs"
    for file in list(docs.rglob("*.md")):
        file.unlink()
    (docs / "README.md").write_text("# consan\n\n[gone](gone.md)\n")
    settings = json.loads((tmp_path / "mkdocs.yml").read_text())
    (tmp_path / "mkdocs.yml").write_text(json.dumps({**settings, "nav": ["README.md"]}))
    done = _built(tmp_path)
    assert done.returncode != 0
    assert "gone.md" in done.stderr
