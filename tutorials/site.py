"""The documentation as a site: `python tutorials/site.py FOLDER` gathers the pages and writes `mkdocs.yml`; mkdocs makes FOLDER/site of it.

All pages keep their places, so their links hold; files that they link to, such as kernels, come along. The menu is the guide's table of
contents, and the tutorials.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("instrument", "reports", "tests", "tutorials")
GUIDE = "tutorials/guide"
_LINK = re.compile(r"(\[([^\[\]]*)\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
_ROW = re.compile(r"^\| \[(.+?)\]\((\w+\.md)\)", re.MULTILINE)
_CELL = re.compile(r"^\|.*$", re.MULTILINE)  # the bars of code in a table are escaped for GitHub, and are not for mkdocs
_SPAN = re.compile(r"`[^`\n]+`")
_CODE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
SETTINGS = {
    "site_name": "consan",
    "docs_dir": "docs",
    "site_dir": "site",
    "use_directory_urls": False,  # the pages can be read without a server, too
    "theme": {"name": "readthedocs", "highlightjs": False, "navigation_depth": 2},
    "markdown_extensions": ["tables", "fenced_code", {"toc": {"permalink": True}}],
    "plugins": ["search"],
    "validation": {"links": {"anchors": "warn", "not_found": "warn", "unrecognized_links": "warn"}},
    "strict": True,
}


def gather(folder: Path) -> None:
    """Fill FOLDER/docs, and write the configuration beside it."""
    docs = folder / "docs"
    shutil.rmtree(docs, ignore_errors=True)
    for page in pages():
        target = docs / page.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = page.read_text()
        target.write_text("".join(part if part.startswith("```") else _linked(part, page, docs) for part in _CODE.split(text)))
    (folder / "mkdocs.yml").write_text(json.dumps({**SETTINGS, "nav": list(menu())}, indent=1))  # JSON is YAML


def pages() -> list[Path]:
    """The documents of the repository."""
    return sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])


def _linked(text: str, page: Path, docs: Path) -> str:
    """The text with links to pages: that of a folder is its README, if it has one. Other files are copied."""

    def change(link: re.Match[str]) -> str:
        begin, words, name, end = link.groups()
        target = (page.parent / name).resolve()
        if "://" in name or target.suffix == ".md" or not target.exists():
            return link[0]
        if target.is_dir():
            readme = target / "README.md"
            return f"{begin}{name.rstrip('/')}/README.md{end}" if readme.is_file() else words
        copy = docs / target.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(target, copy)
        return link[0]

    return _CELL.sub(lambda row: _SPAN.sub(lambda span: span[0].replace("\\|", "|"), row[0]), _LINK.sub(change, text))


def menu() -> Iterator[dict[str, object]]:
    """The menu of the site."""
    yield {"consan": "README.md"}
    guide = (ROOT / GUIDE / "README.md").read_text()
    yield {"Guide": [{"Contents": f"{GUIDE}/README.md"}, *({title: f"{GUIDE}/{page}"} for title, page in _ROW.findall(guide))]}
    yield {"Kinds of findings": "reports/KINDS.md"}
    lessons = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tutorials").glob("[0-9]*/README.md"))
    yield {"Tutorials": ["tutorials/README.md", *lessons]}
    yield {"Rules": ["instrument/SEMANTICS.md", "instrument/BOUNDS.md"]}
    yield {"Changes": "CHANGELOG.md"}


if __name__ == "__main__":
    gather(Path(sys.argv[1]))
