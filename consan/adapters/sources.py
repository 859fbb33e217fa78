"""Finds a file for a kernel's source text, so that the report shows lines the user knows.

A framework compiles a string. Its lines are searched in the user's Python files (the literal appears there verbatim: on the
stack, in `__main__`, in the user's imported modules), then in a `.cu` file beside them with exactly this text, then in the same Python
files as a literal that the program has changed (formats, joined parts: spread_lines.py). Otherwise a copy is written to a folder of the
run. A `#line` directive makes `.loc` name that place. It does not affect include search or code.

Not handled: files not encoded as UTF-8.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import json
import linecache
import os
import re
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from consan.dataclass import dataclass
from consan.reports.source import spread_lines
from consan.temporary import RunFolder

_KERNEL = re.compile(r"__global__\b[^;{(]*?\b(\w+)\s*\(")
_ATTRIBUTE = re.compile(r"__launch_bounds__\s*\([^)]*\)|__cluster_dims__\s*\([^)]*\)|__maxnreg__\s*\([^)]*\)")
_ASSIGNED = re.compile(r"\s*([A-Za-z_]\w*)\s*(?::[^=]+)?=(?!=)")
_OWN = str(Path(__file__).resolve().parents[1])
_LARGEST_FILE = 4 << 20  # larger files are not searched


@dataclass(frozen=True)
class SourceStart:
    """The first line of a kernel's source in a file."""

    path: str
    line: int
    blank: tuple[int, ...] = ()  # lines of the file before each line of the source that the source lacks

    def directive(self) -> str:
        """The `#line` that maps the text after it to this place."""
        return f"#line {self.line} {json.dumps(self.path, ensure_ascii=False)}\n"

    def spread(self, code: str) -> str:
        """The source, with a line for each line of the file."""
        if not self.blank:
            return code
        return "\n".join("\n" * more + line for more, line in zip(self.blank, code.split("\n"), strict=True))


_generated: dict[str, SourceStart] = {}  # sources that consan has made


def kernel_name(code: str, default: str = "kernel") -> str:
    """Name of the first `__global__` function, for file names and messages."""
    match = _KERNEL.search(_ATTRIBUTE.sub("", code))
    return match.group(1) if match else default


def source_folder(session: object) -> Path:
    """The folder for copies of sources: the session's, or a temporary one."""
    folder = getattr(session, "source_dir", None)
    return Path(folder) if folder is not None else _temporary_folder()


@functools.lru_cache(maxsize=1)
def _temporary_folder() -> Path:
    try:
        folder = RunFolder("sources")
    except OSError:
        return Path(os.devnull, "consan-sources")  # not writable: `place` does without a copy
    atexit.register(folder.remove)  # reports carry the lines they show
    return folder.path


def place(code: str, folder: Path) -> SourceStart:
    """Find the source in the user's files, or write a copy. On a full disk, return only a name."""
    found = _generated.get(code) or _in_user_files(code)
    if found is not None:
        return found
    try:
        return _copy(code, folder)
    except OSError:
        return SourceStart(f"{kernel_name(code)}.cu", 1)


def made_around(text: str) -> SourceStart | None:
    """The place of a text of the program that a framework puts into a source: in the line that runs, or below it."""
    frame = _users_frame()
    path, line = Path(frame.f_code.co_filename).absolute(), frame.f_lineno
    below = "\n".join(_text(path).split("\n")[line - 1 :])
    offset = below.find(text) if text.strip() else -1
    return None if offset < 0 else SourceStart(str(path), line + below.count("\n", 0, offset))


def place_generated(above: str, rest: str, at: SourceStart | None) -> str:
    """A source that consan makes: `rest` begins with a text of the program, and is placed there. Gives the source."""
    if at is not None and at.line > above.count("\n"):
        _generated[above + rest] = SourceStart(at.path, at.line - above.count("\n"))
    return above + rest


def _in_user_files(code: str) -> SourceStart | None:
    if not code.strip():
        return None
    files = list(dict.fromkeys(_user_files()))
    for path in files:
        offset = _text(path).find(code)
        if offset >= 0:
            return SourceStart(str(path), _text(path).count("\n", 0, offset) + 1)
    folders = dict.fromkeys(path.parent for path in files)
    for path in (path for folder in folders for path in sorted(folder.glob("*.cu*"))):
        if holds(path, code):
            return SourceStart(str(path), 1)
    for path in files:
        lines = spread_lines.found(code, _text(path))
        if lines:
            return SourceStart(str(path), lines[0], spread_lines.blank(lines))
    return None


def holds(path: Path, code: str) -> bool:
    """Whether a file has exactly this text."""
    return path.is_file() and _text(path) == code.replace("\r\n", "\n")


@functools.lru_cache(maxsize=1 << 11)  # a source is looked for in all files: one that has been dropped is read again each time
def _text(path: Path) -> str:
    try:
        # Python reads literals of a CRLF file with plain newlines.
        return path.read_bytes().decode().replace("\r\n", "\n") if path.stat().st_size <= _LARGEST_FILE else ""
    except (OSError, UnicodeDecodeError):
        return ""


def user_file(name: str) -> str:
    """The path of the one file of the user's that has this name; else empty."""
    found = {str(path) for path in _user_files() if path.name == name}
    return found.pop() if len(found) == 1 else ""


def _user_files() -> Iterator[Path]:
    """Files that may hold the literal, nearest first, without installed packages and the standard library."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield from _if_users(frame.f_code.co_filename)
        frame = frame.f_back
    for module in list(sys.modules.values()):
        yield from _if_users(getattr(module, "__file__", None))


def _if_users(name: object) -> Iterator[Path]:
    if isinstance(name, str) and name.endswith(".py") and not name.startswith(_installed()):
        yield Path(name).absolute()


@functools.lru_cache(maxsize=1)
def _installed() -> tuple[str, ...]:
    own = str(Path(__file__).parents[1])
    return (own, *{value for key in ("stdlib", "platstdlib", "purelib", "platlib") if (value := sysconfig.get_path(key))})


def _copy(code: str, folder: Path) -> SourceStart:
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(code.encode()).hexdigest()[:8]
    path = folder / f"{kernel_name(code)}-{digest}.cu"
    if not path.exists():
        path.write_bytes(code.encode())
    return SourceStart(str(path), 1)


def assigned() -> str:
    """The variable that the line of the program assigns to."""
    frame = _users_frame()
    found = _ASSIGNED.match(linecache.getline(frame.f_code.co_filename, frame.f_lineno))
    return found[1] if found else "buffer"


def _users_frame() -> FrameType:
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    return frame
