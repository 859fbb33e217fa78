"""Which findings follow from another one, or share its cause: a table of rules.

A finding follows from a root if the root's repair has to come first: a race through an mbarrier that is misused, a deadlock at
a barrier that is misused, a copy in flight at the exit whose missing wait is reported. Two findings with one culprit and one repair have
one cause. A rule speaks only of findings of one kernel, and only where the barrier, the operation or the culprit is the same one.

Findings keep their own words in the JSON report, which names the root by its index. For people `worded` changes the words.
Counts, verdict and exit status do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from consan.reports.global_races import FLAG_SIDES, NO_SIDE
from consan.reports.kinds import place
from consan.reports.model import CULPRIT, SEVERITIES, Finding
from consan.reports.names import base_name
from consan.reports.verified import own_words


@dataclass(frozen=True)
class ConsequenceRule:
    """When a finding belongs to a root, and its words.

    `mutual`: both have one cause, and the one that is shown first is the root. Otherwise the repair of the root is all that is missing.
    `certain`: it belongs there in any case. The text shows the finding as a line of the root, and says where that is not certain.
    """

    holds: Callable[[Finding, Finding], bool]  # (root, finding)
    message: str
    fix: str
    mutual: bool = False
    certain: bool = True


_SUFFIXES: Final = ("@update", "@one-store")
_IN_STEP: Final = ("no-barrier", "no-warp-sync")
_LEADING: Final = ("narrow-scope", "cluster", "store-scope", "weak-access", "released-before")
MOST_ROOTS: Final = 64  # of one kernel; findings beyond them stand alone


def roots(findings: Sequence[Finding]) -> dict[int, tuple[int, ConsequenceRule]]:
    """For the index of each finding that has a root: the root's index, and the rule. A root has no root itself."""
    kernels: dict[str, list[int]] = {}
    for index, finding in enumerate(findings):
        if finding.suppressed is None:
            kernels.setdefault(finding.kernel, []).append(index)
    direct: dict[int, tuple[int, ConsequenceRule]] = {}
    for indexes in kernels.values():
        candidates = [index for index in indexes if _may_lead(findings[index])][:MOST_ROOTS]
        for index in indexes:
            found = _root(findings, index, candidates)
            if found is not None:
                direct[index] = found
    return {index: (_last(direct, root), rule) for index, (root, rule) in direct.items()}


def _may_lead(finding: Finding) -> bool:
    """Whether some rule takes it as a root."""
    shares = finding.situation in _LEADING or finding.situation.endswith(_SUFFIXES)
    return finding.kind in _LEADING_KINDS or shares or finding.culprit is not None or finding.verified is not None


def _root(findings: Sequence[Finding], index: int, candidates: Sequence[int]) -> tuple[int, ConsequenceRule] | None:
    finding = findings[index]
    for rule in RULES:
        for other in candidates:
            as_bad = SEVERITIES.index(findings[other].severity) <= SEVERITIES.index(finding.severity)
            if as_bad and (other < index or (other > index and not rule.mutual)) and rule.holds(findings[other], finding):
                return other, rule
    return None


def _last(direct: Mapping[int, tuple[int, ConsequenceRule]], index: int) -> int:
    """The end of a chain of roots. `RULES` have no cycle.

    They lead from scopes to races, from races and deadlocks to waits and barriers, and from an mbarrier that goes on to races.
    """
    while index in direct:
        index = direct[index][0]
    return index


def arranged(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Sorted findings, with each right after its root among those of its severity."""
    found = roots(findings)

    def position(index: int) -> tuple[bool, int, int, int]:
        finding, root = findings[index], found[index][0] if index in found else index
        return bool(finding.suppressed), SEVERITIES.index(finding.severity), root, -1 if index == root else index

    return tuple(findings[index] for index in sorted(range(len(findings)), key=position))


def worded(findings: Sequence[Finding], numbers: Sequence[int]) -> list[Finding]:
    """The findings in the words for people. `numbers`: the number under which each is shown."""
    found = roots(findings)
    return [_worded(finding, findings, numbers, found.get(index)) for index, finding in enumerate(findings)]


def _worded(finding: Finding, findings: Sequence[Finding], numbers: Sequence[int], found: tuple[int, ConsequenceRule] | None) -> Finding:
    if found is None:
        return finding
    root, rule = found
    name = f"{findings[root].severity} {numbers[root]}"
    return replace(
        finding,
        message=f"{finding.message}. {rule.message.format(root=name)}",
        missing=finding.missing if rule.mutual else "",
        accesses=finding.accesses if rule.mutual else finding.pair,  # the root shows what is at fault
        fix=rule.fix.format(root=name, fix=finding.fix, last=place(finding.pair[-1]) if finding.pair else ""),
    )


# --- rules -------------------------------------------------------------------------------------------------------------

_ANY: Final = frozenset(("data-race", "missing-wait", "lifetime", "deadlock"))
# Misuses of an mbarrier after which its phases mean nothing, and the kinds that follow.
_BROKEN: Final[dict[str, frozenset[str]]] = {
    **dict.fromkeys(("not-initialised", "invalidated", "initialised-twice", "init-not-published", "bytes-used"), _ANY),
    **dict.fromkeys(("too-many-arrivals", "tx-range", "count-range", "no-complete", "bytes-not-announced"), _ANY),
    "phase-lapped": frozenset(("deadlock",)),  # of a race it is the effect
}
_RACES: Final = ("data-race", "missing-wait")
_LEADING_KINDS: Final = ("barrier-misuse", "missing-order", *_RACES)
_DISAGREE: Final = ("counts-disagree", "divergent")


def _through_misused(root: Finding, finding: Finding) -> bool:
    """A race, a wait or a deadlock on an mbarrier that is misused."""
    if root.kind != "barrier-misuse" or finding.kind not in _BROKEN.get(root.situation, ()) or not root.barrier:
        return False
    waits = [waiter["mbarrier"] for waiter in finding.waiters if "mbarrier" in waiter and _rank(waiter) == _rank(root.barrier)]
    return _same_mbarrier(root, finding) or root.barrier["offset"] in waits or _names(finding, root.barrier.get("name", ""))


def _same_mbarrier(root: Finding, finding: Finding) -> bool:
    one, other = root.barrier, finding.barrier
    return bool(one and other) and (_offset(one), _rank(one)) == (_offset(other), _rank(other)) and _offset(one) is not None


def _offset(barrier: Mapping[str, Any] | None) -> Any:
    return barrier.get("offset") if barrier else None


def _rank(barrier: Mapping[str, Any] | None) -> Any:
    return barrier.get("cluster_rank") if barrier else None


def _names(finding: Finding, variable: str) -> bool:
    """Whether the culprit is an instruction on the mbarrier of this name. The name of an array does not tell the element."""
    culprit = finding.culprit
    return bool(variable) and "[" not in variable and culprit is not None and culprit.name == variable


def _waits_at_misused(root: Finding, finding: Finding) -> bool:
    """A deadlock at a barrier of the CTA whose use is wrong at that place."""
    if root.kind != "barrier-misuse" or root.situation not in _DISAGREE or finding.kind != "deadlock":
        return False
    lines = {access.ptx_line for access in root.pair}
    return any("barrier" in waiter and waiter.get("ptx_line") in lines for waiter in finding.waiters)


def _same_copy_at_exit(root: Finding, finding: Finding) -> bool:
    """A copy in flight at the exit, where another finding says that its phase is not waited for."""
    if (root.kind, finding.kind) != ("missing-wait", "lifetime") or not root.accesses or not finding.accesses:
        return False
    one, other = root.accesses[0], finding.accesses[0]
    action = one.asynchronous
    signalled = action is not None and action.barrier is not None
    return signalled and action == other.asynchronous and one.site == other.site


_NARROW_FLAGS: Final = (("data-race", "narrow-scope"), ("scope", "store-scope"))


def _through_narrow_flag(root: Finding, finding: Finding) -> bool:
    """An edge of too narrow a scope between the CTAs whose flag has that scope."""
    if (root.kind, root.situation) not in _NARROW_FLAGS or finding.kind != "scope" or finding.situation == "store-scope":
        return False
    return _blocks(root) == _blocks(finding)


_UNRELATED: Final = ("no-synchronisation", "no-cluster-barrier", "released-")
_AT_A_FLAG: Final = FLAG_SIDES
_UNRELEASED: Final = ("no-release", NO_SIDE)
_OF_LOCKS: Final = frozenset(("cas", "exch"))


def _through_weak_flag(root: Finding, finding: Finding) -> bool:
    """A race of two CTAs of which one accesses a flag or a lock with a plain operation.

    All CTAs may take a lock, and another flag between two of them may be a counter that nobody waits for.
    """
    if root.kind != "global-race" or root.situation != "weak-access" or finding.kind != "global-race":
        return False
    if any(_OF_LOCKS.intersection(access.op.split(".")) for access in root.pair):
        return finding.situation.startswith((*_UNRELATED, *_AT_A_FLAG))
    return finding.situation.startswith(_UNRELATED) and _blocks(root) == _blocks(finding)


def _written_late(root: Finding, finding: Finding) -> bool:
    """A write that comes behind the release of its thread, in a race that another flag does not order either."""
    if {root.kind, finding.kind} != {"global-race"} or root.situation != "released-before" or finding.situation not in _UNRELEASED:
        return False
    return root.pair[0].role == "write" and root.pair[0].site == finding.pair[0].site


def _blocks(finding: Finding) -> set[Any]:
    return {access.block for access in finding.pair}


def _one_repair(root: Finding, finding: Finding) -> bool:
    """Two findings of one kind with one culprit and one repair."""
    one, other = root.culprit, finding.culprit
    if root.kind != finding.kind or one is None or other is None or one.site != other.site:
        return False
    return root.fix == finding.fix or (root.kind == "missing-proxy-fence" and _similar(root, finding))


def _similar(root: Finding, finding: Finding) -> bool:
    return root.situation == finding.situation and root.pair[-1].site == finding.pair[-1].site


def _one_update(root: Finding, finding: Finding) -> bool:
    """The load and the store of an update that is not atomic."""
    return all(each.situation.endswith("@update") for each in (root, finding)) and _one_store(root, finding)


def _one_store(root: Finding, finding: Finding) -> bool:
    return root.pair[-1].site == finding.pair[-1].site


def _one_verified_repair(root: Finding, finding: Finding) -> bool:
    """Two findings that one change was seen to remove: at one place, or with one fix; several places may repair several faults."""
    one, other = root.verified, finding.verified
    if one is None or other is None or one.steps != other.steps or _lapped_behind(finding, root):
        return False
    places = {(step.action, step.where, step.file, step.line or -step.ptx_line) for step in one.steps}
    return len(places) == 1 or own_words(root) == own_words(finding) != ""


def _at_shared_id(root: Finding, finding: Finding) -> bool:
    """A race that a named barrier does not order, whose rounds depend on timing."""
    if (root.kind, root.situation, finding.kind) != ("barrier-misuse", "shared-id", "data-race") or finding.culprit is None:
        return False
    return finding.culprit.ptx_line in [access.ptx_line for access in root.pair]


def _behind_lost_rounds(root: Finding, finding: Finding) -> bool:
    """Whether a finding follows from lost rounds of a barrier: a thread arrived twice, or warps are out of step."""
    lost = root.kind == "barrier-misuse" and root.situation in ("arrived-twice", "out-of-step")
    return lost and finding.kind in _ANY and root.kernel == finding.kernel


def _before_its_start(root: Finding, finding: Finding) -> bool:
    """An access to a CTA that may not have started, before which the repair of a race puts a cluster barrier."""
    if (root.kind, root.situation, finding.kind, finding.situation) != ("data-race", "cluster", "lifetime", "not-started"):
        return False
    return root.pair[-1].site == finding.pair[-1].site


def _one_initialisation(root: Finding, finding: Finding) -> bool:
    """Two uses of an mbarrier that its initialisation is not published to."""
    both = {(each.kind, each.situation) for each in (root, finding)}
    if both != {("barrier-misuse", "init-not-published")}:
        return False
    return _same_mbarrier(root, finding) and root.accesses[0].site == finding.accesses[0].site


def _of_private_bytes(root: Finding, finding: Finding) -> bool:
    """Another race of a store of which each thread keeps a value of its own: with one element for all there is no right order."""
    if {root.kind, finding.kind} != {"data-race"} or not root.situation.endswith("@one-store"):
        return False
    stores = {access.site for access in root.pair}
    return any(access.site in stores for access in finding.pair)


def _one_variable(root: Finding, finding: Finding) -> bool:
    """Two stores of values of their own into the same bytes."""
    return all(each.situation.endswith("@one-store") for each in (root, finding)) and root.buffer == finding.buffer is not None


def _one_by_timing(root: Finding, finding: Finding) -> bool:
    """Two pairs of volatile accesses of one variable: code that counts on threads in step has one for each pair of lines."""
    one, other = (each.buffer if each.kind == "missing-order" and each.situation.startswith(_IN_STEP) else None for each in (root, finding))
    return one is not None and other is not None and (base_name(one.name), one.space) == (base_name(other.name), other.space)


def _lapped_behind(root: Finding, finding: Finding) -> bool:
    """An mbarrier that goes on unwaited for, and a race of what it or its ring announces: a producer that goes on too early does both."""
    if finding.situation != "phase-lapped" or root.kind not in _RACES:
        return False
    ring = {access.name for access in finding.accesses if access.role == CULPRIT and access.name}
    name = base_name(root.barrier.get("name", "")) if root.barrier else ""
    return not name or name in {base_name((finding.barrier or {}).get("name", "")), *ring}


def _one_refill(root: Finding, finding: Finding) -> bool:
    """A copy that comes too early: over what another copy brings, and over what is still read."""
    over, read = (root, finding) if root.hazard == "WAW" else (finding, root)
    are_two = over.hazard == "WAW" and read.hazard in ("RAW", "WAR") and over.pair and read.pair
    if not are_two or over.kind != "missing-wait" or read.kind not in _RACES:
        return False
    refilled = read.pair[0].site if read.situation == "refilled" else read.pair[-1].site
    return over.pair[-1].asynchronous is not None and over.pair[-1].site == refilled


_SAME: Final = ("Its cause is that of {root}", "one repair for {root} and this one: {fix}")
_MAY_FOLLOW: Final = ("It may follow from {root}", "repair {root} first; if this one stays: {fix}")
_FOLLOWS: Final = ("It follows from {root}", "repair {root} first")
RULES: Final = (
    ConsequenceRule(_through_misused, *_FOLLOWS),
    ConsequenceRule(_waits_at_misused, *_FOLLOWS),
    ConsequenceRule(_same_copy_at_exit, *_FOLLOWS),
    ConsequenceRule(_through_narrow_flag, *_FOLLOWS),
    ConsequenceRule(_through_weak_flag, *_MAY_FOLLOW, certain=False),
    ConsequenceRule(_written_late, *_MAY_FOLLOW, certain=False),
    ConsequenceRule(_at_shared_id, *_FOLLOWS),
    ConsequenceRule(_behind_lost_rounds, *_MAY_FOLLOW, certain=False),
    ConsequenceRule(_before_its_start, _SAME[0], "the cluster barrier that repairs {root} comes before {last}, and repairs this one too"),
    ConsequenceRule(_one_variable, *_SAME, mutual=True),
    ConsequenceRule(_one_by_timing, _SAME[0], "order all accesses of the variable of {root}: {fix}", mutual=True),
    ConsequenceRule(_of_private_bytes, *_MAY_FOLLOW, certain=False),
    ConsequenceRule(_one_refill, *_MAY_FOLLOW, mutual=True, certain=False),
    ConsequenceRule(_lapped_behind, *_MAY_FOLLOW, certain=False),
    ConsequenceRule(_one_repair, *_SAME, mutual=True),
    ConsequenceRule(_one_update, *_SAME, mutual=True),
    ConsequenceRule(_one_verified_repair, *_SAME, mutual=True),
    ConsequenceRule(_one_initialisation, _SAME[0], "let the barrier that repairs {root} come before {last} too", mutual=True),
)
