"""The examples of `consan explain` do what they say: the first is reported with its kind, the second is clean."""

from __future__ import annotations

import json
import shlex
import textwrap
from pathlib import Path

import pytest

from consan.__main__ import main
from consan.reports.explanations import EXPLANATIONS
from consan.toolchain import find

WHOLE = [kind for kind, explanation in EXPLANATIONS.items() if explanation.launch]

pytestmark = pytest.mark.skipif(find.locate(find.NVRTC) is None, reason="NVRTC is not installed")


def check(code: str, launch: str, folder: Path) -> tuple[int, list[str]]:
    file = folder / "k.cu"
    file.write_text(textwrap.dedent(code))
    status = main(["check", str(file), *shlex.split(launch), "--device", "cpu", "--strict", "-o", str(folder / "r.json")])
    data = json.loads((folder / "r.json").read_text())
    return status, [finding["kind"] for finding in data["findings"]]


def test_the_kinds_of_this_version_have_whole_examples() -> None:
    assert sorted(set(EXPLANATIONS) - set(WHOLE)) == ["global-race", "scope"]


@pytest.mark.parametrize("kind", WHOLE)
def test_the_wrong_example_is_reported_with_its_kind(kind: str, tmp_path: Path) -> None:
    explanation = EXPLANATIONS[kind]
    assert check(explanation.racy, explanation.launch, tmp_path) == (66, [kind])


@pytest.mark.parametrize("kind", WHOLE)
def test_the_right_example_is_clean(kind: str, tmp_path: Path) -> None:
    explanation = EXPLANATIONS[kind]
    assert check(explanation.fixed, explanation.launch, tmp_path) == (0, [])
