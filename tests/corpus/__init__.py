"""Real PTX for tests: `corpus.available()` (see `make.py`). With `tests` on the path: `import corpus`."""

from .make import Entry, available, entries, get, missing, notes

__all__ = ["Entry", "available", "entries", "get", "missing", "notes"]
