"""The common parts of commands: their interface and their parser."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn, Protocol

from consan._errors import UsageError, did_you_mean
from consan.reports.formats.visible import visible_lines


class Command(Protocol):
    """One subcommand."""

    def prepare(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""

    def run(self, args: argparse.Namespace) -> int:
        """Run the command and return the exit status."""


class Parser(argparse.ArgumentParser):
    """argparse whose errors print one line and exit in one place."""

    def error(self, message: str) -> NoReturn:
        """Raise; `main` prints it."""
        raise UsageError(f"{message} (see {self.prog} --help)")

    def refuse(self, words: Sequence[str]) -> NoReturn:
        """Refuse unknown words, and suggest the option that was most likely meant."""
        flag = next((word.partition("=")[0] for word in words if word.startswith("--")), "")
        self.error(f"unrecognized arguments: {' '.join(words)}{did_you_mean(flag, self._option_string_actions)}")


def warn_of_the_cache() -> None:
    """Say why nothing is kept, if that is so: the verdict is the same, but each run repeats the work."""
    module = sys.modules.get("consan.toolchain.cache")  # not imported: --help needs no cache
    if module is not None and module.CACHE.problem is not None:
        print(visible_lines(f"consan: warning: nothing is kept in the cache: {module.CACHE.problem}"), file=sys.stderr)
