"""Opens a session when it is needed: the options of a command are known before, and `--help` needs no session."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from consan import late
from consan.backends.cost import COST
from consan.session.planning.options import SessionOptions
from consan.toolchain.gpu_context import opened_in_background

if TYPE_CHECKING:
    from consan.session.session import Session


def open_session(options: SessionOptions, **others: Any) -> Session:
    """The session that the options ask for. `others`: the other parameters of `Session`."""
    opened = "on" in others or "consan.session.session" in sys.modules
    with COST.working(), opened_in_background(options.device, unless=opened) as wait:
        made = late.session.Session
        wait()
        return made(options, **others)
