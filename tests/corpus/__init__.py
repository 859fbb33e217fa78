"""Real PTX for tests: `corpus.available()` (see `make.py`)."""

from .make import Entry, available, entries, get, missing

__all__ = ["Entry", "available", "entries", "get", "missing"]
