"""The examples of `consan explain` do what they say: the first is reported with its kind, the second is clean."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from sampled import one_in

from consan.__main__ import main
from consan.reports.catalogue.catalogue import KINDS
from consan.reports.catalogue.pages import document, page
from consan.reports.explanations import explanations
from consan.toolchain import find

EXPLANATIONS = explanations()

needs_nvrtc = pytest.mark.skipif(find.locate(find.NVRTC) is None, reason="NVRTC is not installed")


def check(example: str, launch: str, folder: Path) -> tuple[int, list[str]]:
    file = folder / "k.cu"
    file.write_text(example)
    status = main(["check", str(file), *shlex.split(launch), "--device", "cpu", "--strict", "-o", str(folder / "r.json")])
    data = json.loads((folder / "r.json").read_text())
    return status, sorted({finding["kind"] for finding in data["findings"]})


@needs_nvrtc
@pytest.mark.parametrize("kind", EXPLANATIONS)
def test_the_wrong_example_is_reported_with_its_kind(kind: str, tmp_path: Path) -> None:
    explanation = EXPLANATIONS[kind]
    assert check(explanation.racy, explanation.launch, tmp_path) == (66, [kind])


@needs_nvrtc
@pytest.mark.parametrize("kind", one_in(2, EXPLANATIONS, str))
def test_the_right_example_is_clean(kind: str, tmp_path: Path) -> None:
    explanation = EXPLANATIONS[kind]
    assert check(explanation.fixed, explanation.launch, tmp_path) == (0, [])


@pytest.mark.parametrize("kind", KINDS)
def test_pages_say_why_and_how_to_suppress(kind: str) -> None:
    text, explanation = page(kind), EXPLANATIONS[kind]
    for piece in ("\nWhy: ", "\nPTX ISA: ", f"allow({kind}) REASON", f'kind = "{kind}"', f'consan_allow("{kind}", '):
        assert piece in text
    assert all(re.match(r"\d+(\.\d+)+ \w", section) for section in explanation.sections)


def test_the_documentation_is_what_the_command_writes(tmp_path: Path) -> None:
    """`consan explain --markdown -o reports/KINDS.md` writes it anew."""
    assert main(["explain", "--markdown", "-o", str(tmp_path / "kinds.md")]) == 0
    written = (tmp_path / "kinds.md").read_text()
    assert written == document() == (Path(__file__).parents[3] / "reports" / "KINDS.md").read_text()
