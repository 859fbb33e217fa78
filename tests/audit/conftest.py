"""Servers end with the module of tests that used them."""

from __future__ import annotations

from collections.abc import Iterator

import audit_server
import pytest


@pytest.fixture(scope="module", autouse=True)
def servers_end() -> Iterator[None]:
    """Leave no process behind."""
    yield
    audit_server.end()
