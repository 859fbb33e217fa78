"""`consan explain KIND`: the page of one kind of finding; without a KIND, the list of kinds, or with --markdown all pages."""

from __future__ import annotations

import argparse
import sys

from consan._errors import UsageError, did_you_mean
from consan.files import check_writable, write_file
from consan.reports.catalogue.pages import document, markdown, page, summary
from consan.reports.words.kinds import KINDS


class ExplainCommand:
    """Explain a kind of finding."""

    def prepare(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("kind", metavar="KIND", nargs="?", help="such as data-race; without it, list the kinds")
        parser.add_argument("--markdown", action="store_true", help="print Markdown; without KIND, all pages")
        parser.add_argument("-o", "--output", dest="page_file", metavar="FILE", help="write to this file")

    def run(self, args: argparse.Namespace) -> int:
        """Print the page."""
        if args.kind is not None and args.kind not in KINDS:
            hint = did_you_mean(args.kind, KINDS) or f"; the kinds are {', '.join(KINDS)}"
            raise UsageError(f"there is no kind '{args.kind}'{hint}")
        check_writable(args.page_file)
        one, all_of_them = (markdown, document) if args.markdown else (page, summary)
        text = all_of_them() if args.kind is None else one(args.kind)
        if args.page_file is None:
            sys.stdout.write(text)
        else:
            write_file(args.page_file, text)
        return 0
