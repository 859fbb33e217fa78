"""Folders of a run in the system's folder for temporary files. Those of runs that were killed are removed when the next one is made.

A process holds a lock on a file in each of its folders, and so do its forked copies: a folder whose lock is free is nobody's.

Not handled: folders of other users, and file systems without locks (what lies there stays).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

_PREFIX: Final = "consan-"
_LOCK: Final = ".consan-lock"


class RunFolder:
    """A folder `consan-<kind>-...` of this process, with a random name and for its user only. Raises OSError."""

    def __init__(self, kind: str) -> None:
        with contextlib.suppress(OSError):
            _remove_left()
        self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{kind}-"))
        self._lock: IO[bytes] = (self.path / f"{_LOCK}.new").open("wb")
        with contextlib.suppress(OSError):
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            os.rename(self._lock.name, self.path / _LOCK)  # it is locked when it gets the name by which others know it

    @classmethod
    @contextlib.contextmanager
    def filled(cls, kind: str) -> Iterator[RunFolder]:
        """Gives a folder that the block fills. It is removed if the block raises an error."""
        made = cls(kind)
        try:
            yield made
        except BaseException:
            made.remove()
            raise

    def remove(self) -> None:
        """Remove it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def _remove_left() -> None:
    with os.scandir(tempfile.gettempdir()) as entries:
        found = [Path(each.path) for each in entries if each.name.startswith(_PREFIX) and each.is_dir(follow_symlinks=False)]
    for folder in found:
        with contextlib.suppress(OSError), (folder / _LOCK).open("rb+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
