"""Things that two findings of one kernel share: an mbarrier, a copy, a place, a repair. `relations` says for which findings it matters."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Final

from consan.reports.catalogue.situations import NEVER_FREED
from consan.reports.model import CULPRIT, Finding
from consan.reports.source.names import name_without_element
from consan.reports.words.verified import own_words

_LOCKS: Final = frozenset(("cas", "exch"))


def merge_key(finding: Finding) -> tuple[Any, ...]:
    """Unordered: a pair seen once as RAW and once as WAR is one defect; `hazard` stays as first observed."""
    return (finding.kernel, finding.kind, *sorted(access.site for access in finding.pair))


def lines(finding: Finding) -> Iterable[Hashable]:
    """Its instructions."""
    return (access.ptx_line for access in finding.accesses)


def kernel(root: Finding, finding: Finding) -> bool:
    """The kernel alone."""
    return root.kernel == finding.kernel


def mbarrier(root: Finding, finding: Finding) -> bool:
    """The mbarrier of the finding itself."""
    one, other = root.barrier, finding.barrier
    return bool(one and other) and (_offset(one), _rank(one)) == (_offset(other), _rank(other)) and _offset(one) is not None


def misused_mbarrier(root: Finding, finding: Finding) -> bool:
    """The mbarrier of the root: the finding's own, one that a thread waits at, or one of its culprit."""
    if not root.barrier:
        return False
    waits = [waiter["mbarrier"] for waiter in finding.waiters if "mbarrier" in waiter and _rank(waiter) == _rank(root.barrier)]
    return mbarrier(root, finding) or root.barrier["offset"] in waits or _is_named(finding, root.barrier.get("name", ""))


def _offset(barrier: Mapping[str, Any] | None) -> Any:
    return barrier.get("offset") if barrier else None


def _rank(barrier: Mapping[str, Any] | None) -> Any:
    return barrier.get("cluster_rank") if barrier else None


def _is_named(finding: Finding, variable: str) -> bool:
    """Whether the culprit is an instruction on the mbarrier of this name. The name of an array does not name the element."""
    culprit = finding.culprit
    return bool(variable) and "[" not in variable and culprit is not None and culprit.name == variable


def initialisation(root: Finding, finding: Finding) -> bool:
    """The initialisation of one mbarrier."""
    return mbarrier(root, finding) and root.accesses[0].site == finding.accesses[0].site


def waited_barrier(root: Finding, finding: Finding) -> bool:
    """A barrier of the CTA, at the place of the root."""
    lines = {access.ptx_line for access in root.pair}
    return any("barrier" in waiter and waiter.get("ptx_line") in lines for waiter in finding.waiters)


def culprit_barrier(root: Finding, finding: Finding) -> bool:
    """A barrier, which is the culprit of the finding."""
    return finding.culprit is not None and finding.culprit.ptx_line in [access.ptx_line for access in root.pair]


def copy(root: Finding, finding: Finding) -> bool:
    """A copy, and the phase that completes it."""
    if not root.accesses or not finding.accesses:
        return False
    one, other = root.accesses[0], finding.accesses[0]
    action = one.asynchronous
    signalled = action is not None and action.barrier is not None
    return signalled and action == other.asynchronous and one.site == other.site


def product(root: Finding, finding: Finding) -> bool:
    """A product, which has no number in the text."""
    one, other = root.pair[:1], finding.pair[:1]
    return bool(one and other) and (one[0].op, one[0].ptx_line) == (other[0].op, other[0].ptx_line)


def product_statement(root: Finding, finding: Finding) -> bool:
    """A statement that multiplies, which an unrolled loop has several times."""
    one, other = root.pair[:1], finding.pair[:1]
    return bool(one and other) and (one[0].op, one[0].site[:-1]) == (other[0].op, other[0].site[:-1])


def product_read(root: Finding, finding: Finding) -> bool:
    """A statement that multiplies, and whose result the root reads: later uses count on that read."""
    return root.hazard == "RAW" != finding.hazard and product_statement(root, finding)


def blocks(root: Finding, finding: Finding) -> bool:
    """The CTAs."""
    return {access.block for access in root.pair} == {access.block for access in finding.pair}


def lock(root: Finding, _: Finding) -> bool:
    """A lock, which all CTAs may take."""
    return any(takes_lock(access.op) for access in root.pair)


def takes_lock(opcode: str) -> bool:
    """Whether an atomic operation may take a lock: it exchanges, and does not count."""
    return not _LOCKS.isdisjoint(opcode.split("."))


def counter(root: Finding, finding: Finding) -> bool:
    """CTAs: a flag between them that is no lock may be a counter that nothing waits for."""
    return not lock(root, finding) and blocks(root, finding)


def first_write(root: Finding, finding: Finding) -> bool:
    """The write that comes first."""
    return root.pair[0].role == "write" and root.pair[0].site == finding.pair[0].site


def last_place(root: Finding, finding: Finding) -> bool:
    """The place of the second access."""
    return root.pair[-1].site == finding.pair[-1].site


def places(root: Finding, finding: Finding) -> bool:
    """Both places."""
    return {access.site for access in root.pair} == {access.site for access in finding.pair}


def places_handed_back(root: Finding, finding: Finding) -> bool:
    """Both places, and a read that is followed by a signal to whoever refills the bytes."""
    return places(root, finding) and root.cause != NEVER_FREED


def places_never_freed(root: Finding, finding: Finding) -> bool:
    """Both places, and a read that is followed by no such signal."""
    return places(root, finding) and finding.cause == NEVER_FREED


def place_of_peer(root: Finding, finding: Finding) -> bool:
    """The place of the second access, which another CTA than that of the first executes."""
    return len({access.block for access in root.pair}) > 1 and last_place(root, finding)


def store(root: Finding, finding: Finding) -> bool:
    """A store."""
    stores = {access.site for access in root.pair}
    return any(access.site in stores for access in finding.pair)


def filling_store(root: Finding, finding: Finding) -> bool:
    """A store of the root, which was to write what the other one has read."""
    filled = finding.culprit
    return filled is not None and any(access.site[:3] == filled.site[:3] for access in root.pair)


def address(root: Finding, finding: Finding) -> bool:
    """An address that follows from what the root has read."""
    return root.value is not None and any(line in root.value.addresses for line in lines(finding))


def variable(root: Finding, finding: Finding) -> bool:
    """The bytes of a variable."""
    return root.buffer == finding.buffer is not None


def named_variable(root: Finding, finding: Finding) -> bool:
    """A variable, whose bytes may differ: code that counts on threads in step has a finding for each pair of lines."""
    one, other = root.buffer, finding.buffer
    return (
        one is not None
        and other is not None
        and (name_without_element(one.name), one.space) == (name_without_element(other.name), other.space)
    )


def ring(root: Finding, finding: Finding) -> bool:
    """An mbarrier, or a ring of several, that announces what the race touches. A race without an mbarrier may be of any."""
    names = {access.name for access in finding.accesses if access.role == CULPRIT and access.name}
    name = name_without_element(root.barrier.get("name", "")) if root.barrier else ""
    return not name or name in {name_without_element((finding.barrier or {}).get("name", "")), *names}


def refill(root: Finding, finding: Finding) -> bool:
    """A copy that comes too early: over what is still read, or is read before its wait; and over what another copy brings."""
    is_over = finding.hazard == "WAW" and finding.kind == "missing-wait" and finding.pair and finding.pair[-1].asynchronous is not None
    copies = {access.site for access in root.pair if access.asynchronous is not None}
    return bool(is_over) and root.hazard in ("RAW", "WAR") and finding.pair[-1].site in copies


def repair(root: Finding, finding: Finding) -> bool:
    """A culprit, and the words of its repair. For proxy fences, the situation and the last place stand for both."""
    one, other = root.culprit, finding.culprit
    if root.kind != finding.kind or one is None or other is None or one.site != other.site:
        return False
    similar = root.kind == "missing-proxy-fence" and root.situation == finding.situation and last_place(root, finding)
    return root.fix == finding.fix or similar


def verified_repair(root: Finding, finding: Finding) -> bool:
    """A change that was seen to remove both: at one place, or with one fix; several places may repair several faults."""
    one, other = root.verified, finding.verified
    if one is None or other is None or one.steps != other.steps:
        return False
    places = {(step.action, step.where, step.file, step.line or -step.ptx_line) for step in one.steps}
    return len(places) == 1 or own_words(root) == own_words(finding) != ""
