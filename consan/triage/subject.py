"""What is run again and again: one launch of a kernel, or a program; as text that a file can keep and a worker can get.

A kernel's arguments are kept as they were given (`--arg` texts, with the seed of its random ones), its source as a hash: whoever runs it
again compiles the file of that name, and `check_unchanged` says in one line when that is not what it was.

Not kept: the environment of a program, and the files that it reads.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from consan._errors import UsageError
from consan.arguments import ArgSpec, Dim3
from consan.commands.source import CUDA_SUFFIXES, DEFAULT_ARCH, load_ptx

_FILE: Final = re.compile(r"^[ \t]*\.file\b.*$", re.M)
KERNEL_SUFFIXES: Final = (*CUDA_SUFFIXES, ".ptx")


@dataclass(frozen=True)
class Kernel:
    """One launch of one kernel. `seed` is that of random arguments; `expect` has texts N=FILE."""

    file: str
    entry: str
    grid: Dim3
    block: Dim3
    cluster: Dim3 = (1, 1, 1)
    smem: int = 0
    ctas: int | None = None
    args: tuple[str, ...] = ()
    seed: int = 0
    defines: tuple[str, ...] = ()
    include_dirs: tuple[str, ...] = ()
    std: str | None = None
    arch: str | None = None
    expect: tuple[str, ...] = ()
    rtol: float = 0.0
    atol: float = 0.0
    folder: str = ""
    device: str = "cpu"
    policy: str = "default"
    ptx_hash: str = ""
    files: Mapping[str, str] = field(default_factory=dict)  # hashes of what it is made from
    shadow_memory: int | None = None
    assembly: str = "best"
    template: str = ""  # the instance of a template that `entry` is, as C++ names it

    type = "kernel"

    @property
    def label(self) -> str:
        """In a few words."""
        return f"{self.entry} of {self.file}"

    def compile(self, arch: str = DEFAULT_ARCH) -> str:
        """The PTX of the file as it is now."""
        given = argparse.Namespace(
            file=self.file, defines=list(self.defines), include_dirs=list(self.include_dirs), std=self.std, arch=self.arch,
            entry=self.template,
        )  # fmt: skip
        return load_ptx(given, arch)


@dataclass(frozen=True)
class Program:
    """A Python program: `flag` is "", "-m" or "-c", `words` what follows it. `options` are those of `consan run`."""

    flag: str
    words: tuple[str, ...]
    folder: str
    options: tuple[str, ...] = ()
    stdout: bool = False  # whether what it prints is its result, beside its status
    device: str = "cpu"
    files: Mapping[str, str] = field(default_factory=dict)

    type = "program"

    @property
    def label(self) -> str:
        """In a few words."""
        return " ".join(word for word in (self.flag, *self.words) if word and "\n" not in word)


Subject = Kernel | Program
_TYPES: Final[dict[str, Any]] = {"kernel": Kernel, "program": Program}


def hash_ptx(text: str) -> str:
    """What tells one module from another, wherever its source files are."""
    return hashlib.sha256(_FILE.sub("", text).encode()).hexdigest()


def hash_file(name: str) -> str:
    """The same of a file's bytes."""
    try:
        return hashlib.sha256(Path(name).read_bytes()).hexdigest()
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror or error}") from None


def _file_of(spec: ArgSpec) -> str:
    """The file that a buffer is filled from; "" if it is not."""
    init = str(getattr(getattr(spec, "buffer", spec), "init", ""))
    return init if init.endswith((".npy", ".bin")) else ""


def absolute_args(specs: Iterable[ArgSpec]) -> tuple[str, ...]:
    """The texts of arguments with whole names of files: a worker may be in another folder."""
    return tuple(spec.text.replace(f"={file}", f"={os.path.abspath(file)}", 1) if (file := _file_of(spec)) else spec.text for spec in specs)


def absolute_expect(texts: Iterable[str]) -> tuple[str, ...]:
    """The same of N=FILE."""
    parts = (text.partition("=") for text in texts)
    return tuple(f"{number}={os.path.abspath(name)}" if name else number for number, _, name in parts)


def sources_of_kernel(file: str, specs: Iterable[ArgSpec], expect: Iterable[str]) -> dict[str, str]:
    """The files that a launch is made from: the kernel's, those of buffers, and what is expected in them."""
    names = [file, *(os.path.abspath(_file_of(spec)) for spec in specs if _file_of(spec)), *(text.partition("=")[2] for text in expect)]
    return {name: hash_file(name) for name in dict.fromkeys(names) if name}


def sources_of_program(flag: str, words: tuple[str, ...]) -> dict[str, str]:
    """The program's own file, where it has one. A module is looked for when it runs."""
    if flag or not words:
        return {}
    name = os.path.join(words[0], "__main__.py") if os.path.isdir(words[0]) else words[0]
    return {name: hash_file(name)}


def check_unchanged(subject: Subject, stored: str) -> None:
    """UsageError if a file is no longer what it was when `stored` was written."""
    for name, value in subject.files.items():
        if hash_file(name) != value:
            raise UsageError(f"{name} has changed since {stored} was written: its schedules are of another text; run consan stress again")


def to_json(subject: Subject) -> dict[str, Any]:
    """As plain dicts and lists."""
    return {"type": subject.type, **_plain(asdict(subject))}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def from_json(data: Mapping[str, Any]) -> Subject:
    """What `to_json` wrote; KeyError, TypeError or ValueError if it is not."""
    made = _TYPES[data["type"]]
    known = {item.name for item in fields(made)}
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items() if key in known}
    subject: Subject = made(**values)
    return subject
