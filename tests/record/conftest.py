"""What tests of the recording engine need: a C++ compiler, and some a GPU."""

from __future__ import annotations

import math

import pytest

from consan._errors import EnvironmentFailure
from consan.checker.compiled.build import library
from consan.session.asking import reruns


@pytest.fixture(autouse=True)
def cxx() -> None:
    """Skips every test of this folder where nothing can compile the checker."""
    try:
        library()
    except EnvironmentFailure as error:
        pytest.skip(str(error))


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for fixes is bounded by work only: what is found does not depend on the machine."""
    monkeypatch.setattr(reruns, "LONGEST", math.inf)
