"""`consan check --prove SECONDS`: whether what the launch showed of races holds for all launches of the kernel."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from consan.commands.parts.proof_subject import ProofSubject
from consan.instrument.isa import lookup, observing
from consan.prove.proof import PROVEN
from consan.prove.solver import require
from consan.reports.model import VIOLATIONS, AllLaunchesProof, Report
from consan.reports.verdict.proofs import with_proof

if TYPE_CHECKING:
    from consan.commands.check import RequestedLaunch
    from consan.instrument.ptx import Instruction


def with_all_launches(requested: RequestedLaunch, args: argparse.Namespace, report: Report) -> Report:
    """The report, with a proof for all launches, or why there is none. A launch with an error has none."""
    if report.verdict == VIOLATIONS or requested.module is None:
        return report
    require()
    subject = ProofSubject.of(args, requested.module)
    proof = subject.prove(args.prove)
    answer = subject.report(proof.answer, proof, 0.0)
    if proof.answer != PROVEN:
        why, places = next(iter(answer.reasons), ("", ()))
        where = f" ({', '.join(dict.fromkeys(map(str, places)))})" if places else ""
        return replace(report, notes=(*report.notes, f"not proven for all launches: {why}{where}"))
    proven = AllLaunchesProof(subject.block, tuple(answer.assumed()), whole=not any(map(_is_strong, subject.function.instructions())))
    return with_proof(report, requested.entry, proven)


def _is_strong(instruction: Instruction) -> bool:
    row = lookup(instruction.parts)
    return row is not None and (observing.observes_strongly(instruction, row) or observing.writes_strongly(instruction, row))
