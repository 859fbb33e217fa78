"""The session whose virtual machine the stand-in driver serves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from consan.session.planning.options import SessionOptions
from consan.session.session import Session
from consan.session.session_options import open_session


@pytest.fixture
def session() -> Iterator[Session]:
    session = open_session(SessionOptions(device="cpu"))
    yield session
    session.close()
