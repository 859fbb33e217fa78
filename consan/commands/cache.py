"""`consan cache`: where compiled kernels are kept, how large they are, and `consan cache clear`. The status is 0."""

from __future__ import annotations

import argparse

from consan._errors import UsageError
from consan.commands.parts.output import add_output, chosen_output, put
from consan.toolchain.cache import CACHE, LARGEST


class CacheCommand:
    """Show or empty the cache."""

    def prepare(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        actions = "show its folder and size, or remove all entries"
        parser.add_argument("action", nargs="?", choices=("show", "clear"), default="show", help=actions)
        add_output(parser)

    def run(self, args: argparse.Namespace) -> int:
        """Show it; `clear` empties it first. Raises UsageError if it cannot be emptied."""
        chosen_output(args)
        if args.action == "clear":
            try:
                CACHE.clear()
            except OSError as error:
                raise UsageError(f"cannot remove {error.filename or CACHE.folder}: {error.strerror or error}") from None
        return put(args, f"{CACHE.folder}: {CACHE.size() / (1 << 20):.1f} MiB of {LARGEST >> 20} MiB\n")
