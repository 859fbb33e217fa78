"""What a command is, and how every command reads input files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Protocol

from consan._errors import UsageError


class Command(Protocol):
    """One subcommand."""

    @property
    def name(self) -> str:
        """The word on the command line."""

    @property
    def help(self) -> str:
        """One line for `consan --help`."""

    def prepare(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it; the status to exit with."""


def read_file(name: str) -> str:
    """The text of an input file, or one line that says why not."""
    try:
        return Path(name).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not a text file") from None
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror or error}") from None


def write_file(name: str, text: str) -> None:
    """Write an output file, or one line that says why not."""
    try:
        Path(name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {name}: {error.strerror or error}") from None


def check_writable(name: str | None) -> None:
    """Fail before a long run, not after it, when its output has nowhere to go."""
    if name is None:
        return
    path = Path(name)
    if path.is_dir():
        raise UsageError(f"cannot write {name}: it is a folder")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"cannot write {name}: there is no folder {path.parent}")
