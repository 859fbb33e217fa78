"""Types of the catalogue's rows, and the waits and commits of asynchronous operations that its words name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Final

from consan.dataclass import dataclass

UPDATE: Final = "update"  # the shape of a pair: the write puts back, changed, what the read has loaded, as in `bins[i] += 1`
CHECKED: Final = "checked"  # the shape of a pair: what the read gives decides whether the write of the same bytes is made
LAPPED: Final = "phase-lapped"  # an mbarrier goes on unwaited for
BELOW_FENCE: Final = "written-after-fence"  # accumulators, which ptxas orders by itself
GENERAL: Final = "general"  # the situation of a kind if the decoder knows no better


@dataclass(frozen=True)
class Situation:
    """One way to get a finding of a kind. Empty `message` or `severity`: that of the kind."""

    missing: str
    fix: str
    message: str = ""
    severity: str = ""
    policy: str = "default"


@dataclass(frozen=True)
class CatalogueEntry:
    """One row of the catalogue: all that reports say of a kind, but for its page in `consan explain` (reports/explanations).

    `caption`: of its picture; `captions`: those of single situations. `shape`: of the picture (reports/timeline). `blame`: what is said of
    a culprit where the finding is not about an order. `by_compiler`: where the compiler of a framework places barriers, it places what is
    missing. `ends_launch`: without such a finding a launch that did not reach its end would be clean.
    """

    id: str
    title: str
    severity: str
    message: str
    situations: dict[str, Situation]
    caption: str
    captions: Mapping[str, str] = field(default_factory=dict)
    shape: str = "pair"
    blame: str = ""
    by_compiler: bool = False
    ends_launch: bool = False


TENSOR_OPERATIONS: Final = ("tcgen05.mma", "tcgen05.cp", "tcgen05.shift")  # completed by tcgen05.commit
# The wait that makes the completion of an asynchronous operation visible, in PTX. The spelling of frameworks is in frameworks.py.
WAITS: Final[dict[str, str]] = {
    "cp.async": "cp.async.wait_group {leave}",
    "bulk load": "mbarrier.try_wait.parity (parity {parity}) on {barrier}",
    "st.async": "mbarrier.try_wait.parity (parity {parity}) on {barrier}",
    "try_cancel": "mbarrier.try_wait.parity (parity {parity}) on {barrier}",
    "bulk store": "cp.async.bulk.wait_group.read {leave}",
    "wgmma": "wgmma.wait_group.sync.aligned {leave}",
    **dict.fromkeys(TENSOR_OPERATIONS, "mbarrier.try_wait.parity (parity {parity}) on {barrier}"),
    "tcgen05.ld": "tcgen05.wait::ld.sync.aligned",
    "tcgen05.st": "tcgen05.wait::st.sync.aligned",
}
COMMITS: Final[dict[str, str]] = {
    "cp.async": "cp.async.commit_group",
    "bulk store": "cp.async.bulk.commit_group",
    "wgmma": "wgmma.commit_group.sync.aligned",
    **dict.fromkeys(TENSOR_OPERATIONS, "tcgen05.commit"),
}
# Nobody has waited, or another thread has: the situation if the mbarrier is of another CTA than (2).
UNSEEN: Final = {f"{of}{name}": f"{of}peer-not-waited" for of in ("", "tensor-") for name in ("not-waited", "waited-no-barrier")}
SIGNALLED_COPY: Final = "signalled"  # a `cp.async` in no group, whose completion an mbarrier signals
UNPUBLISHED_TO_PEER: Final = "init-not-published-to-peer"
FREED_EARLY: Final = "tensor-freed-early"  # a dealloc that nothing orders behind what a warp does in the cells
FREEING: Final = (("tcgen05.ld", "tcgen05.dealloc"), ("tcgen05.st", "tcgen05.dealloc"))
NOT_AWAITED: Final = ("phase-lapped", "phase-not-waited")  # nobody has waited for the phase before
# Causes: the rules of consan.reports.culprits that other rules look for.
UNWRITTEN: Final = "unwritten"  # no instruction writes the bytes
RELEASED_EARLY: Final = "released-early"  # an arrival before the read lets the bytes be overwritten
ISSUED_ONLY: Final = "issued-only"  # an arrival is of another kind than it should be
NEVER_FREED: Final = "never-freed"  # nothing signals to the issuer of copies that the bytes are free
SIGNALLED: Final = ("bulk load", "st.async", "try_cancel", *TENSOR_OPERATIONS)  # completed by an mbarrier; all others by a group


_ONE_STEP: Final = Situation(
    "one atomic operation that looks and writes: between the two steps another thread can look, too",
    "let one {compare_and_swap} at {second_at} look and write: it writes only where it finds the value that allows it, and what it gives"
    " says whether this thread has written",
    "what the {first_role} at {first_at} gives decides whether the {second_role} of the same bytes at {second_at} is made: several threads"
    " can pass that test",
)
# Check, then act, by the hazard.
CHECKED_FIRST: Final = {
    "": _ONE_STEP,
    "/WAW": replace(_ONE_STEP, message="several threads can pass the test of these bytes before the {second_role} at {second_at}"),
}
