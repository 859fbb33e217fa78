"""A disk cache of compiled PTX and cubins, keyed by all inputs.

The folder is `CONSAN_CACHE_DIR`, else the user's cache folder. A file is written under another name and then
renamed, so a reader sees all of it or none, and two processes may compile the same thing. A digest of the contents
starts each file, so a truncated or damaged file is a miss. A full disk or a read-only home turns the cache off for the process:
the work is then repeated each time, and `Cache.problem` says why.

Not handled: eviction; `clear()` empties it. Keys contain the consan version, so old entries only waste space.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

VARIABLE = "CONSAN_CACHE_DIR"
_DIGEST_BYTES = 32


def default_folder() -> Path:
    """The folder the environment asks for, else `consan` in the platform's cache folder."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path("~/Library/Caches/consan").expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "consan"


@functools.lru_cache(maxsize=1)
def _release() -> str:
    from importlib import metadata  # late: it imports the packages for mail

    try:
        return metadata.version("consan")
    except metadata.PackageNotFoundError:
        return "source"


def key(*parts: str | bytes) -> str:
    """A hash over the parts and the consan version; lengths are hashed too, so ("ab", "c") and ("a", "bc") differ."""
    digest = hashlib.sha256()
    for part in (_release(), *parts):
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


class Cache:
    """Byte strings on disk by key. Every method works, without storing anything, when the folder cannot be used."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self.problem: str | None = None

    @property
    def folder(self) -> Path:
        """The folder of the entries; it follows the environment unless a folder was given."""
        return self._folder if self._folder is not None else default_folder()

    def get(self, name: str) -> bytes | None:
        """The stored bytes, or None when they are absent or damaged."""
        try:
            with self._path(name).open("rb") as file:
                digest, body = file.read(_DIGEST_BYTES), file.read()
        except (OSError, RuntimeError):
            return None
        return body if hashlib.sha256(body).digest() == digest else None

    def put(self, name: str, data: bytes) -> None:
        """Store bytes; a failure is noted in `problem` and stops further attempts."""
        if self.problem is not None:
            return
        try:
            self._write(self._path(name), hashlib.sha256(data).digest() + data)
        except OSError as error:
            self.problem = f"{self.folder}: {error.strerror or error}"
        except RuntimeError as error:  # the user has no home folder (pathlib.Path.expanduser)
            self.problem = f"no folder for the cache: {error} Set {VARIABLE}."

    def fetch(self, name: str, make: Callable[[], bytes]) -> bytes:
        """The stored bytes, or those that `make` gives, which are then stored."""
        found = self.get(name)
        if found is None:
            found = make()
            self.put(name, found)
        return found

    def fetch_text(self, name: str, make: Callable[[], str]) -> str:
        """`fetch` for text."""
        return self.fetch(name, lambda: make().encode()).decode()

    def clear(self) -> None:
        """Remove every entry."""
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.folder)

    def size(self) -> int:
        """Bytes on disk, for `consan doctor`."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file()) if self.folder.is_dir() else 0

    def _path(self, name: str) -> Path:
        return self.folder / name[:2] / name[2:]

    @staticmethod
    def _write(path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=".tmp-", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(temporary, path)
        except BaseException:  # Ctrl-C as well
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise


CACHE = Cache()
"""The cache of this process."""
