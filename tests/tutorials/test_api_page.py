"""The API reference is that of the code, and what the guide names is public."""

from __future__ import annotations

import dataclasses
import inspect
import operator
import re
import subprocess
import sys
from pathlib import Path

import api_page
import pytest

import consan

GUIDE = Path(__file__).parents[2] / "tutorials" / "guide"
CALLED = re.compile(r"\bconsan\.([A-Za-z_]+)(?=[(.`])(?!\.(?:py|md|toml|json))")
CALLS = ("Kernel", "TensorMap", "Texture", "assert_clean", "check", "launch", "triton.cpu")
OTHERS = {"h", "annotations"}  # consan.h, the header; a package that kernels import by itself


def test_the_reference_is_up_to_date() -> None:
    assert api_page.PAGE.read_text() == api_page.page(), "python tests/tutorials/api_page.py"


@pytest.mark.parametrize("page", sorted(GUIDE.glob("*.md")), ids=lambda page: page.stem)
def test_the_names_in_the_guide_are_public(page: Path) -> None:
    used = {name for name in CALLED.findall(page.read_text()) if not hasattr(consan, name) or name not in dir(consan)}
    assert used <= OTHERS


@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_call_describes_its_parameters_and_its_errors(name: str) -> None:
    """Each parameter is named in the docstring, and so is what is raised for a wrong one. `options` stands for those of another call."""
    called = operator.attrgetter(name)(consan)
    words = inspect.getdoc(called) or ""
    described = set(re.findall(r"`(\w+)`", words)) | {"self"}
    assert [each for each in inspect.signature(called).parameters if each not in described] == []
    assert "Raises `" in words


@pytest.mark.parametrize("name", ["Access", "Finding", "Report"])
def test_each_field_is_described(name: str) -> None:
    rows = [
        line.split(" | ")
        for line in api_page.page().partition(f"## `consan.{name}`")[2].partition("\n## ")[0].splitlines()
        if line[:3] == "| `"
    ]
    assert len(rows) == len(dataclasses.fields(getattr(consan, name)))
    assert [row[0] for row in rows if not row[-1].strip("| ")] == []


def test_a_wrong_keyword_is_refused_by_its_name() -> None:
    """By each call that takes options. Python itself refuses those of calls with a signature."""
    for call in (consan.check, consan.triton.cpu):
        with pytest.raises(consan.ConsanError, match=r"no option 'sead'; did you mean seed\?|Triton is not installed"), call(sead=1):
            pass
    kernel = consan.Kernel(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n")
    for call in (consan.launch, consan.assert_clean):
        with pytest.raises((TypeError, consan.UsageError), match="sead"):
            call(kernel, 1, 32, [], device="cpu", sead=1)


def test_dir_lists_what_is_public_and_nothing_else() -> None:
    assert dir(consan) == sorted([*consan.__all__, "__version__"])
    done = subprocess.run(
        [sys.executable, "-c", "import consan; print(callable(consan.triton.cpu))"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"


def test_public_names_have_docstrings() -> None:
    assert [name for name in consan.__all__ if not getattr(consan, name).__doc__] == []
    assert set(consan.__all__) | {"__version__"} == set(dir(consan))
