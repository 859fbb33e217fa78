"""Real PTX for tests: `corpus.available()` (see `make.py`). With `tests` on the path: `import corpus`."""

from .host import Recorded
from .make import Entry, available, cutlass_launch, entries, get, missing, notes

__all__ = ["Entry", "Recorded", "available", "cutlass_launch", "entries", "get", "missing", "notes"]
