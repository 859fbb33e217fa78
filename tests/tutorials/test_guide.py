"""The user's guide and the other pages: commands run, options exist, links lead somewhere, named kernels and tests exist."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from consan import options
from consan.reports.catalogue.catalogue import KINDS

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "tutorials" / "guide"
FOLDERS = ("instrument", "reports", "tests", "tutorials")
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])
SEMANTICS = (ROOT / "instrument" / "SEMANTICS.md").read_text()
QUOTING = (".py", ".md", ".hpp", ".cuh", ".cu", ".ptx")
KERNELS = {path.stem: path for folder in ("kernels", "ranks") for path in (ROOT / "tests" / folder).rglob("*.cu")}


def _run(words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)


def _commands(pattern: str) -> list[tuple[str, str]]:
    return [(page.name, found) for page in GUIDE.glob("*.md") for found in re.findall(pattern, page.read_text(), re.MULTILINE)]


# What has no file of its own in the repository, or is a step of a longer story that tutorial 6 tells.
_RUNS = re.compile(r"tutorials/")


@pytest.mark.parametrize(("page", "command"), [each for each in _commands(r"^\$ (consan (?:.*\\\n.*|.*))$") if _RUNS.search(each[1])])
def test_commands_find_the_planted_bug(page: str, command: str, tmp_path: Path) -> None:
    words = shlex.split(command.replace("\\\n", " "))[1:]
    done = _run(["-m", "consan", words[0], "-o", str(tmp_path / "report.json"), *words[1:]])
    assert done.returncode == 66, done.stdout + done.stderr


def test_the_options_exist() -> None:
    known = {flag for option in options.ALL for flag in option.flags}
    named = set(re.findall(r"^\| `(--?[a-z-]+)", (GUIDE / "options.md").read_text(), re.MULTILINE))
    assert named
    assert named <= known


def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", heading)).lower().replace(" ", "-") for heading in headings}


def _leads_somewhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    return target.exists() and (not anchor or target.suffix != ".md" or anchor in _anchors(target))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL))
    assert [link for link in links if "://" not in link and not _leads_somewhere(page, link)] == []


def test_the_semantics_name_kernels_that_exist() -> None:
    """In the columns "twin" and "kernel", and after "Twins:". The last column of the rules of tensor memory is the kind, or the policy."""
    cells = [row.rsplit("|", 2)[1] for row in SEMANTICS.splitlines() if row.startswith(("| R-", "| a "))]
    named = re.findall(r"`([a-z0-9_]+)`", " ".join([*cells, *re.findall(r"Twins?: ([^.]*)\.", SEMANTICS)]))
    assert len(named) > 60
    assert set(named) - set(KINDS) - {"isa"} <= KERNELS.keys()


def test_each_rule_of_global_memory_has_a_twin_with_its_fault() -> None:
    rows = {row.split("|")[1].strip(): row.rsplit("|", 2)[1] for row in SEMANTICS.splitlines() if row.startswith("| R-GM")}
    assert list(rows) == [f"R-GM{number}" for number in range(1, 15)]
    for rule, cell in rows.items():
        named = re.findall(r"`([a-z0-9_]+)`", cell)
        assert any("RACY" in KERNELS[name].read_text() for name in named), rule


def test_rules_and_decisions_are_named_once() -> None:
    rules = re.findall(r"^(?:\| )?(R-[A-Z]+\d*)[ .]", SEMANTICS, re.MULTILINE)
    decisions = re.findall(r"^\| ([DT]\d+) \|", SEMANTICS, re.MULTILINE)
    assert len(rules) == len(set(rules)) > 40
    assert decisions == [f"{letter}{number}" for letter, last in (("D", 29), ("T", 22)) for number in range(1, last + 1)]


def test_quoted_sections_and_rules_of_the_semantics_exist() -> None:
    sections = set(re.findall(r"^#+ (\d+(?:\.\d+)?)", SEMANTICS, re.MULTILINE))
    rules = set(re.findall(r"\bR-[A-Z]+\d*\b", SEMANTICS))
    wrong = []
    for path in (each for folder in ("consan", *FOLDERS) for each in (ROOT / folder).rglob("*") if each.suffix in QUOTING):
        text = path.read_text()
        quoted = re.findall(r"\bSEMANTICS(?:,? section)? (\d+(?:\.\d+)?)", text)
        wrong += [(path.name, each) for each in quoted if each not in sections]
        wrong += [(path.name, each) for each in re.findall(r"\bR-[A-Z]+\d+\b", text) if each not in rules]
    assert wrong == []
