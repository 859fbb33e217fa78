"""`consan check`: fixes that runs of the changed kernel confirm, and `--patch`.

A patch is one of the CUDA source if lines, numbers and words of it can be all verified fixes and a check of the patched kernel finds
nothing; else one of the PTX, and the PTX itself is written beside it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from consan import late
from consan._errors import ConsanError
from consan.commands.parts.unoptimised import compiled, is_compared
from consan.dataclass import dataclass
from consan.files import read_file, write_file
from consan.launching.source import compile_text, is_cuda
from consan.progress import for_terminal
from consan.reports.counts import plural
from consan.reports.model import CLEAN, Report, VerifiedFix
from consan.reports.source.patches import diff, fixed
from consan.reports.source.source_patches import patched
from consan.reports.words.verified import asks_for_nothing

if TYPE_CHECKING:
    from consan.commands.check import RequestedLaunch
    from consan.session.asking.reruns import CudaSource

_SHORTEST = 1e-3  # seconds of a time limit


def with_reruns(requested: RequestedLaunch, args: argparse.Namespace, report: Report) -> Report:
    """The report with fixes for findings for which a replay has none; on the virtual machine only, where a run costs no assembly.

    `--timeout` is for all: what the launch has left of it.
    """
    if report.device != "cpu" or requested.module is None or report.exit:
        return _reported(report)

    def run(ptx: str, seed: int) -> late.reruns.Ran:
        left = None if args.timeout is None else max(requested.ends - time.monotonic(), _SHORTEST)
        return requested.again(argparse.Namespace(**(vars(args) | {"timeout": left})), ptx, seed)

    search = late.reruns.Reruns(
        requested.module, run, requested.block, requested.cluster, requested.ends, longest=late.reruns.LONGEST - requested.searched,
        source=_source(requested, args),
    )  # fmt: skip
    try:
        with for_terminal(delay=1.0).working("trying fixes"):
            return _reported(search.confirmed(report), search.tried)
    except KeyboardInterrupt:  # without those of the runs
        return report


def _source(requested: RequestedLaunch, args: argparse.Namespace) -> CudaSource | None:
    if not is_cuda(args.file):
        return None
    other = compiled(requested, args, optimised=False) if is_compared(requested, args) else None
    return late.reruns.CudaSource(args.file, read_file(args.file), compiled(requested, args, optimised=True), other)


def _reported(report: Report, tried: int = 0) -> Report:
    """The report, which says where no fix was verified. `tried`: repairs in runs."""
    if all(finding.verified or finding.severity == "note" or asks_for_nothing(finding) for finding in report.active):
        return report
    ran = f"; runs of the kernel with {plural(tried, 'repair')} have confirmed none" if tried else ""
    return replace(report, notes=(*report.notes, f"no fix was verified{ran}"))


def with_patch(requested: RequestedLaunch, args: argparse.Namespace, report: Report) -> Report:
    """Write the verified fixes of findings that count, check the patched kernel, and note its verdict."""
    fixes = [each.verified for each in report.active if each.verified is not None]
    patches = [(patch, _checked(requested, args, patch)) for patch in _patches(requested, args, fixes)]
    if not patches:
        print(f"consan: warning: {args.patch} was not written: there is no verified fix that can be written as a patch", file=sys.stderr)
        return report
    patch, checked = next((each for each in patches if _is_clean(each[1])), patches[-1])
    write_file(args.patch, diff(patch.name, patch.before, patch.after))
    ptx_path = Path(args.patch).with_name(Path(patch.name).name)
    if is_cuda(args.file) and not is_cuda(patch.name):
        write_file(str(ptx_path), patch.before)  # the user has no such file
    base = f" ({ptx_path})" if is_cuda(args.file) and not is_cuda(patch.name) else ""
    found = checked if isinstance(checked, str) else f"{checked.verdict}, {plural(len(checked.active), 'finding')}"
    note = f"with {args.patch}, a patch of {patch.name}{base}: the kernel was checked again: {found}"
    print(f"consan: {note}", file=sys.stderr)
    return replace(report, notes=(*report.notes, note))


def _is_clean(checked: Report | str) -> bool:
    """Whether nothing is found: the warning that a patch repairs does not count for the verdict."""
    return isinstance(checked, Report) and checked.verdict == CLEAN and all(each.severity == "note" for each in checked.active)


@dataclass(frozen=True)
class _Patch:
    """The name of the file that is patched, and its text before and after."""

    name: str
    before: str
    after: str


def _patches(requested: RequestedLaunch, args: argparse.Namespace, fixes: list[VerifiedFix]) -> Iterator[_Patch]:
    """One of the source, if whole lines and numbers of it may be the fixes; one of the PTX."""
    source = read_file(args.file) if fixes and is_cuda(args.file) else ""
    if text := patched(source, fixes, args.file) if source else "":
        yield _Patch(args.file, source, text)
    if requested.module is not None and any(fix.edits for fix in fixes):
        ptx = requested.module.text
        yield _Patch(str(Path(args.file).with_suffix(".ptx")), ptx, fixed(ptx, fixes))


def _left_unoptimised(requested: RequestedLaunch, args: argparse.Namespace, patch: _Patch) -> str:
    """The kind of a race that the patched source has where it is compiled without optimisation."""
    if not is_cuda(patch.name) or not is_compared(requested, args):
        return ""
    report = requested.again(args, compiled(requested, args, optimised=False)(patch.after), args.seed).report
    return next((each.kind for each in late.reruns.races(report)), "")


def _checked(requested: RequestedLaunch, args: argparse.Namespace, patch: _Patch) -> Report | str:
    """The report on the patched kernel, or why there is none."""
    try:
        ptx = compile_text(patch.after, args, requested.arch) if is_cuda(patch.name) else patch.after
        report = requested.again(args, ptx, args.seed).report
        left = _left_unoptimised(requested, args, patch) if report.verdict == CLEAN else ""
        return f"without optimisation it has a {left}" if left else report
    except ConsanError as error:
        return f"it could not be: {error}"
