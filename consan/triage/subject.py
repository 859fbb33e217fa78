"""The subject of repeated runs: one launch of a kernel, or a program, as text for files and workers.

A kernel's arguments are stored as given (`--arg` texts, with the seed of random ones), its source as a hash. A repeat
compiles the file of that name, and `check_unchanged` raises with one line if it has changed.

Not stored: the environment of a program, and the files that it reads.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, field, fields
from pathlib import Path
from typing import Any, Final

from consan._errors import UsageError
from consan.dataclass import dataclass
from consan.launching.arguments import ArgSpec, Dim3
from consan.launching.source import DEFAULT_ARCH, load_ptx
from consan.session.planning.options import SessionOptions

_FILE: Final = re.compile(r"^[ \t]*\.file\b.*$", re.M)


@dataclass(frozen=True)
class KernelSource:
    """The file of a kernel, and how it is compiled."""

    file: str
    defines: tuple[str, ...] = ()
    include_dirs: tuple[str, ...] = ()
    std: str | None = None
    arch: str | None = None
    template: str = ""  # the template instance of the kernel, as C++ names it
    ptx_hash: str = ""

    def compile(self, arch: str = DEFAULT_ARCH) -> str:
        """The PTX of the file as it is now."""
        given = argparse.Namespace(
            file=self.file, defines=list(self.defines), include_dirs=list(self.include_dirs), std=self.std, arch=self.arch,
            entry=self.template,
        )  # fmt: skip
        return load_ptx(given, arch)


@dataclass(frozen=True)
class LaunchText:
    """How a kernel is launched. `seed` is for random arguments."""

    entry: str
    grid: Dim3
    block: Dim3
    cluster: Dim3 = (1, 1, 1)
    smem: int = 0
    args: tuple[str, ...] = ()
    seed: int = 0


@dataclass(frozen=True)
class Expected:
    """Buffers as a right run leaves them: texts N=FILE, and how far a number may be off."""

    expect: tuple[str, ...] = ()
    rtol: float = 0.0
    atol: float = 0.0


@dataclass(frozen=True)
class HowChecked:
    """The options of `consan check` that a run has, too."""

    policy: str = "default"
    ctas: int | None = None
    shadow_memory: int | None = None
    assembly: str = "best"
    engine: str = "auto"
    trace_memory: int | None = None
    exhaustive: bool = False
    sample: int | None = None
    global_memory: str = "auto"

    def session_options(self, device: str, seed: int, timeout: float | None) -> SessionOptions:
        """The options of one run. Which CTAs are watched is no option of a session."""
        given = {name: value for name, value in asdict(self).items() if name != "ctas"}
        return SessionOptions(device=device, seed=seed, timeout=timeout, **given)


@dataclass(frozen=True)
class KernelSubject:
    """One launch of one kernel."""

    source: KernelSource
    launch: LaunchText
    expected: Expected = Expected()
    checked: HowChecked = HowChecked()
    folder: str = ""
    device: str = "cpu"
    files: Mapping[str, str] = field(default_factory=dict)  # hashes of its files

    type = "kernel"

    @property
    def label(self) -> str:
        """A short label."""
        return f"{self.launch.entry} of {self.source.file}"


@dataclass(frozen=True)
class ProgramSubject:
    """A Python program: `flag` is "", "-m" or "-c", `words` what follows it. `options` are those of `consan run`."""

    flag: str
    words: tuple[str, ...]
    folder: str
    options: tuple[str, ...] = ()
    stdout: bool = False  # whether its output is part of its result
    device: str = "cpu"
    files: Mapping[str, str] = field(default_factory=dict)

    type = "program"

    @property
    def label(self) -> str:
        """A short label."""
        return " ".join(word for word in (self.flag, *self.words) if word and "\n" not in word)


Subject = KernelSubject | ProgramSubject
_TYPES: Final[dict[str, Any]] = {"kernel": KernelSubject, "program": ProgramSubject}


def hash_ptx(text: str) -> str:
    """A hash of a module's text that does not depend on the paths of its source files."""
    return hashlib.sha256(_FILE.sub("", text).encode()).hexdigest()


def hash_file(name: str) -> str:
    """A hash of a file's bytes."""
    try:
        return hashlib.sha256(Path(name).read_bytes()).hexdigest()
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror or error}") from None


def _file_of(spec: ArgSpec) -> str:
    """The file of a buffer; "" if it has none."""
    init = str(getattr(getattr(spec, "buffer", spec), "init", ""))
    return init if init.endswith((".npy", ".bin")) else ""


def absolute_args(specs: Iterable[ArgSpec]) -> tuple[str, ...]:
    """The argument texts with absolute file names: a worker may run in another folder."""
    return tuple(spec.text.replace(f"={file}", f"={os.path.abspath(file)}", 1) if (file := _file_of(spec)) else spec.text for spec in specs)


def absolute_expect(texts: Iterable[str]) -> tuple[str, ...]:
    """The same for N=FILE."""
    parts = (text.partition("=") for text in texts)
    return tuple(f"{number}={os.path.abspath(name)}" if name else number for number, _, name in parts)


def sources_of_kernel(file: str, specs: Iterable[ArgSpec], expect: Iterable[str]) -> dict[str, str]:
    """The files of a launch: the kernel's, those of buffers, and the expected contents."""
    names = [file, *(os.path.abspath(_file_of(spec)) for spec in specs if _file_of(spec)), *(text.partition("=")[2] for text in expect)]
    return {name: hash_file(name) for name in dict.fromkeys(names) if name}


def sources_of_program(flag: str, words: tuple[str, ...]) -> dict[str, str]:
    """The program's own file, if it has one. A module is found when it runs."""
    if flag or not words:
        return {}
    name = os.path.join(words[0], "__main__.py") if os.path.isdir(words[0]) else words[0]
    return {name: hash_file(name)}


def check_unchanged(subject: Subject, stored: str) -> None:
    """UsageError if a file has changed since `stored` was written."""
    for name, value in subject.files.items():
        if hash_file(name) != value:
            raise UsageError(f"{name} has changed since {stored} was written: its schedules are of another text; run consan stress again")


_PARTS: Final[dict[str, Any]] = {"source": KernelSource, "launch": LaunchText, "expected": Expected, "checked": HowChecked}


def to_json(subject: Subject) -> dict[str, Any]:
    """As JSON-compatible dicts and lists. The parts of a kernel's launch are not nested there."""
    flat: dict[str, Any] = {}
    for name, value in asdict(subject).items():
        flat |= value if name in _PARTS else {name: value}
    return {"type": subject.type, **_plain(flat)}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def from_json(data: Mapping[str, Any]) -> Subject:
    """The subject that `to_json` wrote. Raises KeyError, TypeError or ValueError for other data."""
    made = _TYPES[data["type"]]
    parts = {name: _read(part, data) for name, part in _PARTS.items()} if made is KernelSubject else {}
    subject: Subject = _read(made, data, **parts)
    return subject


def _read(made: Any, data: Mapping[str, Any], **parts: Any) -> Any:
    """A dataclass from the values with the names of its fields. `parts`: the fields that are known."""
    known = {item.name for item in fields(made)} - parts.keys()
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items() if key in known}
    return made(**values, **parts)
