"""The made-up driver and the programs are built once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from native_case import Case, build, recordings


@pytest.fixture(scope="session")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """What the tests of this folder share."""
    return build(tmp_path_factory.mktemp("native"))


@pytest.fixture(autouse=True)
def _recordings(case: Case) -> Iterator[None]:
    with recordings(case.folder):
        yield
