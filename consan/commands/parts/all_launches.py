"""`consan check --prove SECONDS`: whether what the launch showed of races holds for all launches of the kernel."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from consan.commands.parts.proof_subject import ProofSubject
from consan.prove.kernel import sees_others
from consan.prove.proof import PROVEN
from consan.prove.solver import require
from consan.reports.model import VIOLATIONS, AllLaunchesProof, Report
from consan.reports.verdict.proofs import with_proof

if TYPE_CHECKING:
    from consan.commands.check import RequestedLaunch


def with_all_launches(requested: RequestedLaunch, args: argparse.Namespace, report: Report) -> Report:
    """The report, with a proof for all launches, or why there is none. A launch with an error has none."""
    if report.verdict == VIOLATIONS or requested.module is None:
        return report
    require()
    subject = ProofSubject.of(args, requested.module)
    proof = subject.prove_as_launched(requested.parameters, args.prove)
    answer = subject.report(proof.answer, proof, 0.0)
    if proof.answer != PROVEN:
        why, places = next(iter(answer.reasons), ("", ()))
        where = f" ({', '.join(dict.fromkeys(map(str, places)))})" if places else ""
        return replace(report, notes=(*report.notes, f"not proven for all launches: {why}{where}"))
    assumed = (*answer.assumed(), *proof.related())
    proven = AllLaunchesProof(subject.block, assumed, whole=not sees_others(subject.function))
    return with_proof(report, requested.entry, proven)
