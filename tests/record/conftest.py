"""What tests of the recording engine need: a C++ compiler, and some a GPU."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from armed_support import OPEN

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


@pytest.fixture(autouse=True)
def programs_end(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No adapter of a program stays, also where a test has failed as a planted fault lets it."""
    yield
    while OPEN:
        OPEN[-1].close()
