"""A proof for all launches of a kernel in a report: its coverage, its verdict, its words."""

from __future__ import annotations

import pytest

from consan.reports.formats import json_format
from consan.reports.formats.phrases import summary
from consan.reports.model import AllLaunchesProof, KernelSummary, Report
from consan.reports.verdict.conclusion import assemble
from consan.reports.verdict.coverage import by_kernel
from consan.reports.verdict.proofs import with_proof

WHOLE = AllLaunchesProof((64, 1, 1), ("integers do not overflow at k.cu:3",), whole=True)
STRONG = AllLaunchesProof((64, 1, 1), ())
GAP = KernelSummary("k", 1, global_stores=1, global_gaps=("its log has no room",), global_missed=("1x1x1 x 64x1x1",))


def _report(*kernels: KernelSummary, checked: tuple[str, ...] = ("shared-memory",)) -> Report:
    return assemble(device="cpu", kernels=kernels, checked=checked)


def test_a_proof_closes_a_gap_in_global_memory() -> None:
    before = _report(GAP)
    assert (before.verdict, len(before.incomplete)) == ("incomplete", 1)
    after = with_proof(before, "k", WHOLE)
    assert (after.verdict, after.incomplete, after.checked) == ("clean", (), ("shared-memory", "global-memory"))
    assert by_kernel(after)["k"]["global-memory"] == by_kernel(after)["k"]["races"] == "proven for all launches"
    assert not any(each.startswith("global-memory") for each in after.not_checked)


@pytest.mark.parametrize(("kernel", "proof"), [("k", STRONG), ("other", WHOLE)])
def test_other_proofs_leave_the_gap(kernel: str, proof: AllLaunchesProof) -> None:
    after = with_proof(_report(GAP, KernelSummary("other", 1)), kernel, proof)
    assert (after.verdict, len(after.incomplete)) == ("incomplete", 1)


def test_other_gaps_stay() -> None:
    before = assemble(device="cpu", kernels=(GAP,), checked=("shared-memory",), unchecked=("a launch was stopped",))
    assert with_proof(before, "k", WHOLE).incomplete == ("a launch was stopped",)


def test_what_the_user_leaves_out_stays_so() -> None:
    after = with_proof(_report(KernelSummary("k", 1, global_stores=1, excluded=("global-memory",))), "k", WHOLE)
    assert by_kernel(after)["k"]["global-memory"] == "excluded by the user"
    assert after.checked == ("shared-memory",)


def test_it_is_said_and_stored() -> None:
    after = with_proof(_report(KernelSummary("k", 1, global_stores=1, global_checked=1)), "k", WHOLE)
    assert json_format.loads(json_format.dumps(after)).kernels[0].proof == WHOLE
    (said,) = [text for name, text in summary(after) if name == "proof"]
    assert said.startswith("k: proven for all launches with blocks of 64 x 1 x 1")
