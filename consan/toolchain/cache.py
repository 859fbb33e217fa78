"""A disk cache of compiled PTX and cubins, keyed by all inputs.

The folder is `CONSAN_CACHE_DIR`, else the user's cache folder. A file is written under another name and then
renamed, so a reader sees all of it or none, and two processes may compile the same thing. A digest of the contents
starts each file, so a truncated or damaged file is a miss. A full disk or a read-only home turns the cache off for the process:
the work is then repeated each time, and `Cache.problem` says why. A folder that another user owns or may write is not used: its files
hold code that this process would run. Above `LARGEST` bytes the entries that were not used for the longest time go. `clear()` empties it.

Not handled: folders above the cache that others may write.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from consan import late

VARIABLE = "CONSAN_CACHE_DIR"
LARGEST = 512 << 20  # bytes of all entries
_KEPT = 0.75  # of LARGEST, after old entries were removed
_FOLDER = "[0-9a-f][0-9a-f]"  # of the entries whose keys begin so
_DIGEST_BYTES = 32
_LOCK = ".lock"  # behind the path of an entry
_AGAIN = 0.05  # seconds until a lock is looked at again
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def default_folder() -> Path:
    """The folder the environment asks for, else `consan` in the platform's cache folder."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path("~/Library/Caches/consan").expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "consan"


@functools.lru_cache(maxsize=1)
def _release() -> str:
    try:
        return late.metadata.version("consan")
    except late.metadata.PackageNotFoundError:
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
        self._stored: int | None = None  # bytes of all entries, as far as this process knows
        self._safe: dict[Path, bool] = {}
        self.problem: str | None = None

    @property
    def folder(self) -> Path:
        """The folder of the entries; it follows the environment unless a folder was given."""
        return self._folder if self._folder is not None else default_folder()

    def get(self, name: str) -> bytes | None:
        """The stored bytes, or None when they are absent or damaged."""
        try:
            if not self._is_safe():
                return None
            with self._path(name).open("rb") as file:
                digest, body = file.read(_DIGEST_BYTES), file.read()
                with contextlib.suppress(OSError):
                    os.utime(file.fileno())  # used now, for `_evict`
        except (OSError, RuntimeError):
            return None
        return body if hashlib.sha256(body).digest() == digest else None

    def put(self, name: str, data: bytes) -> None:
        """Store bytes; a failure is noted in `problem` and stops further attempts."""
        if self.problem is not None:
            return
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._is_safe():
                return
            self._write(self._path(name), hashlib.sha256(data).digest() + data)
            self._count(len(data))
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

    def fetch_once(self, name: str, make: Callable[[], bytes], patience: float) -> bytes:
        """`fetch`, where one process makes it, and others wait for that: so many seconds, then they make it, too."""
        found = self.get(name)
        if found is None:
            with self._alone(name, patience):
                found = self.fetch(name, make)
        return found

    @contextlib.contextmanager
    def _alone(self, name: str, patience: float) -> Iterator[None]:
        """Inside the block no other process has this lock, unless it took too long. The system takes it from a process that ends."""
        with contextlib.ExitStack() as until:
            with contextlib.suppress(ImportError, OSError, RuntimeError):  # not every system or folder has locks
                import fcntl  # late: not every system has it

                self._path(name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                if self._is_safe():
                    lock = until.enter_context(open(f"{self._path(name)}{_LOCK}", "wb"))
                    last = time.monotonic() + patience
                    while not _is_taken(fcntl, lock) and time.monotonic() < last:
                        time.sleep(_AGAIN)
            yield

    def fetch_text(self, name: str, make: Callable[[], str]) -> str:
        """`fetch` for text."""
        return self.fetch(name, lambda: make().encode()).decode()

    def _is_safe(self) -> bool:
        """Whether only this user can have written the folder's files. If not, `problem` says so."""
        folder = self.folder
        if folder not in self._safe:
            found = folder.stat()
            owned = found.st_uid in (os.geteuid(), 0)
            self._safe[folder] = owned and not found.st_mode & _OTHERS_WRITE
            if not self._safe[folder]:
                who = "other users may write it (chmod go-w)" if owned else "it belongs to another user"
                self.problem = f"{folder}: {who}: the cache is not used. {VARIABLE} names another folder"
        return self._safe[folder]

    def measure(self) -> None:
        """Learn the size of all entries, for processes that are forked: each would walk the folder at its first `put`."""
        with contextlib.suppress(OSError, RuntimeError):
            self._stored = self.size()

    def _count(self, added: int) -> None:
        """Keep the size of all entries, and remove old ones where they are too large."""
        self._stored = self.size() if self._stored is None else self._stored + added
        if self._stored > LARGEST:
            self._stored = self._evict(int(LARGEST * _KEPT))

    def _evict(self, most: int) -> int:
        """Remove the entries that were not used for the longest time, until `most` bytes are left. Returns how many are left."""
        entries = sorted((found.st_mtime, found.st_size, path) for path, found in self._entries())
        left = sum(size for _, size, _ in entries)
        for _, size, path in entries:
            if left <= most:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
                left -= size
        return left

    def clear(self) -> None:
        """Remove every entry, and nothing that is not one: the folder is the user's choice."""
        for path, _ in self._entries():
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        with contextlib.suppress(OSError):  # other files are in it
            for folder in self.folder.glob(_FOLDER):
                folder.rmdir()
            self.folder.rmdir()

    def size(self) -> int:
        """Bytes on disk, for `consan doctor`."""
        return sum(found.st_size for _, found in self._entries())

    def _entries(self) -> Iterator[tuple[str, os.stat_result]]:
        """The paths of all entries: by `scandir`, since `Path` takes ten times as long, and a process walks at its first `put`."""
        for folder in self.folder.glob(_FOLDER):
            with contextlib.suppress(FileNotFoundError), os.scandir(folder) as files:
                for each in files:
                    with contextlib.suppress(FileNotFoundError):  # another process has removed it
                        if each.is_file():
                            yield each.path, each.stat()

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


def _is_taken(fcntl: Any, lock: Any) -> bool:
    """Take a lock. A record lock, which no child of this process keeps. False: another process has it."""
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


CACHE = Cache()
"""The cache of this process."""
