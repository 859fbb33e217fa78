"""Shared by the plugin's files: the keys of pytest's stashes, the settings, and the warning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from consan.plugin.ledger import Ledger
    from consan.plugin.watch import Checking, WatchedTest

CHECKING: Final[pytest.StashKey[Checking]] = pytest.StashKey()
LEDGER: Final[pytest.StashKey[Ledger]] = pytest.StashKey()
WATCH: Final[pytest.StashKey[WatchedTest]] = pytest.StashKey()


class ConsanWarning(pytest.PytestWarning):
    """A likely mistake in consan's settings or suppressions."""


def setting(config: pytest.Config, name: str) -> Any:
    """An option from the command line, else from the ini file, else None. Available before conftests are imported."""
    for given in (getattr(config, "option", None), config.known_args_namespace):
        value = getattr(given, name, None)
        if value is not None:
            return value
    return config.getini(name)
