"""The door to called hooks (`--engine inline`): all else imports this module when it needs them, and nothing else of theirs.

Behind it: instrument/called_hooks.py with its passes and runtime, and the shadow tables. Without these files kernels are recorded all the
same (tests/record/test_without_hooks.py).
"""

from __future__ import annotations

from consan.instrument.called_hooks import instrument
from consan.session.modules.runtime import library_for
from consan.session.modules.shadow import MiB, Room, Shadow, arena_bytes_of, describe_bounds, describe_most

__all__ = ["MiB", "Room", "Shadow", "arena_bytes_of", "describe_bounds", "describe_most", "instrument", "library_for"]
