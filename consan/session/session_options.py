"""Opens a session when it is needed: the options of a command are known before, and `--help` needs no session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from consan import late
from consan.backends.cost import COST
from consan.session.planning.options import SessionOptions

if TYPE_CHECKING:
    from consan.session.session import Session


def open_session(options: SessionOptions, **others: Any) -> Session:
    """The session that the options ask for. `others`: the other parameters of `Session`."""
    with COST.working():
        return late.session.Session(options, **others)
