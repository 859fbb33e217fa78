"""`consan explain KIND`: the page of one kind of finding; without a KIND, the list of kinds."""

from __future__ import annotations

import argparse
import difflib

from consan._errors import UsageError
from consan.reports.explanations import page, summary
from consan.reports.kinds import KINDS


class ExplainCommand:
    """Explain a kind of finding."""

    name = "explain"
    help = "what a kind of finding means, with an example and its fix"

    def prepare(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("kind", metavar="KIND", nargs="?", help="such as data-race; leave it out for the list")

    def run(self, args: argparse.Namespace) -> int:
        """Print the page."""
        if args.kind is None:
            print(summary(), end="")
            return 0
        if args.kind not in KINDS:
            near = difflib.get_close_matches(args.kind, KINDS, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]}?" if near else f"; the kinds are {', '.join(KINDS)}"
            raise UsageError(f"there is no kind '{args.kind}'{hint}")
        print(page(args.kind), end="")
        return 0
