"""Opens the session that the options of a command ask for."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from consan.options import RUN, SESSION

if TYPE_CHECKING:
    from consan.session.session import Session


def open_session(arguments: argparse.Namespace, **others: Any) -> Session:
    """The session that the options ask for."""
    from consan.session.session import Session  # late: --help needs no session

    given = {option.name: getattr(arguments, option.name) for option in (*SESSION, *RUN) if hasattr(arguments, option.name)}
    return Session(**given, **others)
