"""Reading and writing the files that a user names: what goes wrong is one line.

Runs that the user has not named are stored in the folder `.consan` of the project, which is the nearest folder at or above the working
directory that has a pyproject.toml or a .git; where there is none, or it is not writable, the working directory.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from consan._errors import UsageError

_LARGEST_TEXT: Final = 1 << 29  # characters: an endless device must not fill the machine's memory
_BINARY: Final = re.compile("[\0-\x08\x0e-\x1f\x7f-\x9f]")  # characters that no text in Latin-1 has
STORE: Final = ".consan"
_MARKS: Final = ("pyproject.toml", ".git")  # of a project's folder
_ARCHIVE: Final = b"PK\3\4"  # how a zip archive begins


def read_file(name: str) -> str:
    """The text of an input file without a byte order mark. Raises UsageError with one line if it cannot be read."""
    try:
        with open(name, encoding="utf-8-sig") as file:
            text = file.read(_LARGEST_TEXT + 1)
    except UnicodeDecodeError:
        text = _latin(name)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise UsageError(f"cannot read {name}: {reason(error)}") from None
    if len(text) > _LARGEST_TEXT:
        raise UsageError(f"cannot read {name}: it is larger than {_LARGEST_TEXT >> 20} MiB")
    return text


def _latin(name: str) -> str:
    """The text of a file that is not UTF-8, such as a source with comments in Latin-1. UsageError if it has control characters."""
    with open(name, encoding="latin-1") as file:
        text = file.read(_LARGEST_TEXT + 1)
    if _BINARY.search(text):
        raise UsageError(f"{name} is not a text file")
    return text


def is_archive(name: str) -> bool:
    """Whether a file is a zip archive. False if it cannot be read."""
    try:
        with open(name, "rb") as file:
            return file.seekable() and file.read(len(_ARCHIVE)) == _ARCHIVE
    except (OSError, ValueError):
        return False


def read_data(name: str) -> bytes:
    """The bytes of an input file. Raises UsageError with one line if it cannot be read."""
    try:
        return Path(name).read_bytes()
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {name}: {reason(error)}") from None


def stored_name(name: str) -> str:
    """The name of a run in the folder of stored runs, relative to the working directory. The folder is made when the run is written."""
    here = Path.cwd()
    project = next((folder for folder in (here, *here.parents) if any((folder / mark).exists() for mark in _MARKS)), here)
    return os.path.relpath((project if os.access(project, os.W_OK) else here) / STORE / name)


def write_file(name: str, text: str | bytes, folder: str = "") -> None:
    """Write an output file. Raises UsageError with one line if that fails. `folder`: what the name is relative to."""
    path = Path(folder, name)
    try:
        if path.parent.name == STORE:
            _make_store(path.parent)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write {name}: {reason(error)}") from None


def _make_store(folder: Path) -> None:
    """Make the folder of stored runs. Git ignores what is in it."""
    if not folder.is_dir():
        folder.mkdir(exist_ok=True)
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")


def reason(error: Exception) -> str:
    """Why a file could not be used, without its name, which the message already has."""
    return getattr(error, "strerror", None) or str(error)


def check_writable(name: str | None) -> None:
    """Check the output before a long run rather than after it."""
    if name is None:
        return
    path = Path(name)
    try:
        if path.is_dir():
            raise UsageError(f"cannot write {name}: it is a folder")
        if path.parent.name == STORE and not path.parent.exists():
            _check_folder(name, path.absolute().parent.parent)
        elif not path.absolute().parent.is_dir():
            raise UsageError(f"cannot write {name}: there is no folder {path.parent}")
        else:
            _try_to_write(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write {name}: {reason(error)}") from None


def _check_folder(name: str, folder: Path) -> None:
    """Check that the folder of stored runs can be made."""
    if not os.access(folder, os.W_OK):
        raise UsageError(f"cannot write {name}: Permission denied; -o FILE stores the run elsewhere")


def _try_to_write(path: Path) -> None:
    """Open the file without changing it, and leave no new file. Devices and pipes are skipped: opening one may have an effect."""
    if os.path.lexists(path):
        if path.is_file():
            path.open("ab").close()
        return
    path.open("xb").close()
    path.unlink()
