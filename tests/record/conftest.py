"""What tests of the recording engine need: a C++ compiler, and some a GPU."""

from __future__ import annotations

import pytest

from consan.checker import build


@pytest.fixture(autouse=True)
def cxx() -> None:
    """Skips every test of this folder where nothing can compile the checker."""
    if build.compiler() is None:
        pytest.skip("no C++ compiler and no ziglang")
