"""`consan explain KIND`: the page of one kind of finding; without a KIND, the list of kinds, or with --markdown all pages."""

from __future__ import annotations

import argparse
from typing import Final

from consan._errors import UsageError, did_you_mean
from consan.commands.parts.output import TEXT, add_output, chosen_output, put
from consan.reports.catalogue.pages import document, markdown, page, summary
from consan.reports.words.wording import KINDS

MARKDOWN: Final = "markdown"


class ExplainCommand:
    """Explain a kind of finding."""

    def prepare(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("kind", metavar="KIND", nargs="?", help="such as data-race; without it, list the kinds")
        group = add_output(parser, (TEXT, MARKDOWN))
        words = "as --format markdown; without KIND, all pages"
        group.add_argument("--markdown", dest="form", action="store_const", const=MARKDOWN, help=words)

    def run(self, args: argparse.Namespace) -> int:
        """Print the page."""
        if args.kind is not None and args.kind not in KINDS:
            hint = did_you_mean(args.kind, KINDS) or f"; the kinds are {', '.join(KINDS)}"
            raise UsageError(f"there is no kind '{args.kind}'{hint}")
        one, all_of_them = (markdown, document) if chosen_output(args) == MARKDOWN else (page, summary)
        return put(args, all_of_them() if args.kind is None else one(args.kind))
