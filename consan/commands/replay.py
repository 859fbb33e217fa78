"""`consan replay FILE`: repeats a failure from a schedule of `consan reduce`, or from a seed of a `consan stress` campaign.

The same text, arguments and decisions give the same run. If the text has changed (source, compiler or consan), replay
fails with one line, because decisions refer to places in the text that ran.

A file of `--keep-histories` is not run again: its recorded histories are checked again, without the program and without a GPU.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace

from consan import late, options
from consan._errors import UsageError
from consan.commands.parts.deliver import deliver, shown_by
from consan.commands.parts.output import TEXT, add_output, chosen_output
from consan.files import is_archive, read_data, write_file
from consan.reports import render
from consan.reports.model import EXIT_VIOLATIONS, Report
from consan.reports.source.sources import of_texts
from consan.reports.verdict.conclusion import exit_status
from consan.session.executing.histories import replay
from consan.session.planning.options import SessionOptions
from consan.suppressions import finish

NOT_REPRODUCED = 1


class ReplayCommand:
    """Run a stored schedule again."""

    def prepare(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("file", metavar="FILE", help="file written by consan reduce, by consan stress, or with --keep-histories")
        parser.add_argument("--seed", dest="chosen", metavar="N", help="for a file of stress: the seed [the first that failed]")
        parser.add_argument("--confirm", metavar="N", help="run it N times [3]; not for histories")
        options.add(parser, options.EXIT, "recorded histories")
        group = add_output(parser, options.FORMATS, "write the report of the run to this file")
        options.add_to(group, (options.NOTES, *options.PICTURE, *options.TERMINAL))

    def run(self, args: argparse.Namespace) -> int:
        """Choose by the file's kind."""
        chosen_output(args)
        return replay_histories(args) if is_archive(args.file) else replay_schedule(args)


def replay_schedule(args: argparse.Namespace) -> int:
    """Run, compare, show."""
    times = 3 if args.confirm is None else options.read_as("--confirm", args.confirm, options.read_positive)
    folder = os.getcwd()  # the run changes to the campaign's folder
    data = late.again.any_document(args.file)
    stored = late.again.stored_of(args.file, data, args.chosen)
    job = late.again.job_again(args.file, data, args.rules)
    outcomes = late.again.replay(job, stored, times)
    same = sum(stored.failure(outcome) and outcome.result == stored.result for outcome in outcomes)
    report = outcomes[0].report
    assert report is not None
    report = replace(report, seed=stored.seed, command=("consan", *args.argv))
    printed = _report(args, report, folder)
    if printed == TEXT:
        late.show.show_replay(data, outcomes, report, sys.stdout, shown_by(args))
    said = f"{'reproduced' if same == times else 'NOT reproduced'}: {same} of {times} times: {stored.failure.text}"
    print(said, file=sys.stdout if printed == TEXT else sys.stderr)
    return EXIT_VIOLATIONS if same == times else NOT_REPRODUCED


def _report(args: argparse.Namespace, report: Report, folder: str) -> str:
    """Write the report to the file of -o, or print it in a format that is not text. Returns the format of what is printed."""
    if args.file_out is not None:
        write_file(args.file_out, render(report, args.form, **shown_by(args)), folder)
        return TEXT
    if args.form != TEXT:
        deliver(report, args.form, None, shown_by(args))
    return str(args.form)


def replay_histories(args: argparse.Namespace) -> int:
    """Check recorded histories again, and show the report. The status is that of `consan check`."""
    for option, value in (("--seed", args.chosen), ("--confirm", args.confirm)):
        if value is not None:
            raise UsageError(f"{option}: {args.file} holds recorded histories, which are not run again")
    session = late.session.Session(SessionOptions(device="cpu", engine="record"), private=True)
    found, texts = replay(session, args.file, read_data(args.file))
    report = finish(found, args.rules, of_texts(texts))
    status = exit_status(report, strict=args.strict, allow_incomplete=args.allow_incomplete)
    report = replace(report, command=("consan", *args.argv), status=status)
    if _report(args, report, os.getcwd()) == TEXT:
        deliver(report, TEXT, None, shown_by(args))
    return status
