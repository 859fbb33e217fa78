"""The API reference is that of the code, and what the guide names is public."""

from __future__ import annotations

import re
from pathlib import Path

import api_page
import pytest

import consan

GUIDE = Path(__file__).parents[2] / "tutorials" / "guide"
CALLED = re.compile(r"\bconsan\.([A-Za-z_]+)(?=[(.`])(?!\.(?:py|md|toml|json))")
OTHERS = {"h", "annotations"}  # consan.h, the header; a package that kernels import by itself


def test_the_reference_is_up_to_date() -> None:
    assert api_page.PAGE.read_text() == api_page.page(), "python tests/tutorials/api_page.py"


@pytest.mark.parametrize("page", sorted(GUIDE.glob("*.md")), ids=lambda page: page.stem)
def test_the_names_in_the_guide_are_public(page: Path) -> None:
    used = {name for name in CALLED.findall(page.read_text()) if not hasattr(consan, name) or name not in dir(consan)}
    assert used <= OTHERS


def test_public_names_have_docstrings() -> None:
    assert [name for name in consan.__all__ if not getattr(consan, name).__doc__] == []
    assert set(consan.__all__) | {"__version__"} == set(dir(consan))
