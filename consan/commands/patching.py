"""`consan check`: fixes that runs of the changed kernel confirm, and `--patch`.

A patch is one of the CUDA source if all verified fixes are whole lines of it, else one of the PTX. The patched kernel is checked again.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from consan._errors import ConsanError
from consan.files import read_file, write_file
from consan.launching.source import compile_text, is_cuda
from consan.progress import for_terminal
from consan.reports.model import Report, VerifiedFix, plural
from consan.reports.patches import diff, fixed, is_patch, patched

if TYPE_CHECKING:
    from consan.commands.check import RequestedLaunch

_SHORTEST = 1e-3  # seconds of a time limit


def with_reruns(requested: RequestedLaunch, args: argparse.Namespace, report: Report) -> Report:
    """The report with fixes for findings for which a replay has none; on the virtual machine only, where a run costs no assembly.

    `--timeout` is for all: what the launch has left of it.
    """
    from consan.session.reruns import LONGEST, Ran, Reruns

    if report.device != "cpu" or requested.module is None or report.exit:
        return _told(report)

    def run(ptx: str, seed: int) -> Ran:
        left = None if args.timeout is None else max(requested.ends - time.monotonic(), _SHORTEST)
        return requested.again(argparse.Namespace(**(vars(args) | {"timeout": left})), ptx, seed)

    search = Reruns(requested.module, run, requested.block, requested.cluster, requested.ends, longest=LONGEST - requested.searched)
    try:
        with for_terminal(delay=1.0).working("trying fixes"):
            return _told(search.confirmed(report), search.tried)
    except KeyboardInterrupt:  # without those of the runs
        return report


def _told(report: Report, tried: int = 0) -> Report:
    """The report, which says where no fix was verified. `tried`: repairs in runs."""
    if all(finding.verified or finding.severity == "note" for finding in report.active):
        return report
    ran = f"; runs of the kernel with {plural(tried, 'repair')} have confirmed none" if tried else ""
    return replace(report, notes=(*report.notes, f"no fix was verified{ran}"))


def with_patch(requested: RequestedLaunch, args: argparse.Namespace, report: Report) -> Report:
    """Write the verified fixes of findings that count, check the patched kernel, and note its verdict."""
    fixes = [each.verified for each in report.active if each.verified is not None]
    text = _patch(requested, args, fixes)
    if text is None:
        print(f"consan: warning: {args.patch} was not written: there is no verified fix that can be written as a patch", file=sys.stderr)
        return report
    name, before, after = text
    write_file(args.patch, diff(name, before, after))
    told = f"with {args.patch}, a patch of {name}: {_checked(requested, args, name, after)}"
    print(f"consan: {told}", file=sys.stderr)
    return replace(report, notes=(*report.notes, told))


def _patch(requested: RequestedLaunch, args: argparse.Namespace, fixes: list[VerifiedFix]) -> tuple[str, str, str] | None:
    """The name of the file that is patched, and its text before and after."""
    if fixes and is_cuda(args.file) and all(is_patch(fix, args.file) for fix in fixes):
        source = read_file(args.file)
        return args.file, source, patched(source, fixes)
    if requested.module is None or not any(fix.edits for fix in fixes):
        return None
    ptx = requested.module.text
    return str(Path(args.file).with_suffix(".ptx")), ptx, fixed(ptx, fixes)


def _checked(requested: RequestedLaunch, args: argparse.Namespace, name: str, text: str) -> str:
    """The verdict on the patched kernel."""
    try:
        ptx = compile_text(text, args, requested.arch) if is_cuda(name) else text
        found = requested.again(args, ptx, args.seed).report
    except ConsanError as error:
        return f"the kernel could not be checked again: {error}"
    return f"the kernel was checked again: {found.verdict}, {plural(len(found.active), 'finding')}"
