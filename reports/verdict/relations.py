"""Which of two findings speaks, and which belongs to the other one: relations between kinds and situations, as data.

A relation names the finding that leads (its root), the other one, and what the two share. `precedence` reads the tables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from consan.reports.global_races import FLAG_SIDES, NO_SIDE
from consan.reports.model import Finding
from consan.reports.verdict import shared

Share = Callable[[Finding, Finding], bool]

# --- what belongs to another finding ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Which:
    """Findings of these kinds and situations. None is named: any. `but`: situations that are left out. `known`: what is known of them.

    `no-release*` is every situation that begins so, `*@update` every one that ends so.
    """

    kinds: tuple[str, ...] = ()
    situations: tuple[str, ...] = ()
    but: tuple[str, ...] = ()
    known: str = ""  # "culprit" or "verified"

    def has(self, finding: Finding) -> bool:
        """Whether a finding is one of them."""
        if (self.kinds and finding.kind not in self.kinds) or finding.situation in self.but:
            return False
        named = not self.situations or any(_matches(finding.situation, name) for name in self.situations)
        return named and (not self.known or getattr(finding, self.known) is not None)


def _matches(situation: str, name: str) -> bool:
    if name.startswith("*"):
        return situation.endswith(name[1:])
    return situation.startswith(name[:-1]) if name.endswith("*") else situation == name


@dataclass(frozen=True)
class RootWords:
    """How a finding names its root: the end of its message, and its fix."""

    message: str
    fix: str


@dataclass(frozen=True)
class Belongs:
    """A finding belongs to a root of the same kernel: in one of the cases the two are of these kinds, and share this.

    `mutual`: both have one cause, and the one that is shown first is the root. Otherwise the repair of the root is all that is missing.
    `certain`: it belongs there in any case. The text shows the finding as a line of the root, and says where that is not certain.
    """

    cases: tuple[tuple[Which, Which, Share], ...]  # root, finding
    words: RootWords
    mutual: bool = False
    certain: bool = True

    def holds(self, root: Finding, finding: Finding) -> bool:
        """Whether it belongs to this root."""
        return any(one.has(root) and other.has(finding) and share(root, finding) for one, other, share in self.cases)


SAME: Final = RootWords("Its cause is that of {root}", "one repair for {root} and this one: {fix}")
MAY_FOLLOW: Final = RootWords("It may follow from {root}", "repair {root} first; if this one stays: {fix}")
FOLLOWS: Final = RootWords("It follows from {root}", "repair {root} first")
_OF_START: Final = RootWords(SAME.message, "the cluster barrier that repairs {root} comes before {last}, and repairs this one too")
_OF_VARIABLE: Final = RootWords(SAME.message, "order all accesses of the variable of {root}: {fix}")
_OF_INIT: Final = RootWords(SAME.message, "let the barrier that repairs {root} come before {last} too")

_RACES: Final = ("data-race", "missing-wait")
_FOLLOWING: Final = Which((*_RACES, "lifetime", "deadlock"))
_STUCK: Final = Which(("deadlock",))
_RACE: Final = Which(("data-race",))
_ANY: Final = Which()


def _misuse(*situations: str) -> Which:
    return Which(("barrier-misuse",), situations)


def _global(*situations: str) -> Which:
    return Which(("global-race",), situations)


# An mbarrier whose phases mean nothing any more.
_BROKEN: Final = _misuse(
    *("not-initialised", "invalidated", "initialised-twice", "init-not-published", "bytes-used"),
    *("too-many-arrivals", "tx-range", "count-range", "no-complete", "bytes-not-announced"),
)
_LAPPED: Final = _misuse("phase-lapped")  # an mbarrier that goes on unwaited for: of a race it is the effect
_UNPUBLISHED: Final = _misuse("init-not-published")
_NARROW_EDGE: Final = Which(("scope",), but=("store-scope",))
_WEAK: Final = _global("weak-access")
_UNRELATED: Final = ("no-synchronisation*", "no-cluster-barrier*", "released-*")
_AT_A_FLAG: Final = tuple(f"{name}*" for name in FLAG_SIDES)
_UPDATES: Final = Which(situations=("*@update",))
_ONE_STORE: Final = ("*@one-store",)  # of which each thread keeps a value of its own: with one element for all there is no right order
_BY_TIMING: Final = Which(("missing-order",), ("no-barrier*", "no-warp-sync*"))  # volatile accesses
_OF_REPAIR: Final = Which(known="culprit")
_VERIFIED: Final = Which(known="verified")

BELONGS: Final = (
    Belongs(((_BROKEN, _FOLLOWING, shared.misused_mbarrier), (_LAPPED, _STUCK, shared.misused_mbarrier)), FOLLOWS),
    Belongs(((_misuse("counts-disagree", "divergent"), _STUCK, shared.waited_barrier),), FOLLOWS),
    Belongs(((Which(("missing-wait",)), Which(("lifetime",)), shared.copy),), FOLLOWS),
    Belongs(
        (
            (Which(("data-race",), ("narrow-scope",)), _NARROW_EDGE, shared.blocks),
            (Which(("scope",), ("store-scope",)), _NARROW_EDGE, shared.blocks),
        ),
        FOLLOWS,
    ),
    Belongs(
        (
            (_WEAK, _global(*_UNRELATED, *_AT_A_FLAG), shared.lock),
            (_WEAK, _global(*_UNRELATED), shared.counter),
        ),
        MAY_FOLLOW,
        certain=False,
    ),
    Belongs(((_global("released-before"), _global("no-release", NO_SIDE), shared.first_write),), MAY_FOLLOW, certain=False),
    Belongs(((_misuse("shared-id"), _RACE, shared.culprit_barrier),), FOLLOWS),
    Belongs(((_misuse("arrived-twice", "out-of-step"), _FOLLOWING, shared.kernel),), MAY_FOLLOW, certain=False),
    Belongs(((Which(("data-race",), ("cluster",)), Which(("lifetime",), ("not-started",)), shared.last_place),), _OF_START),
    Belongs(((Which(situations=_ONE_STORE), Which(situations=_ONE_STORE), shared.variable),), SAME, mutual=True),
    Belongs(((_BY_TIMING, _BY_TIMING, shared.named_variable),), _OF_VARIABLE, mutual=True),
    Belongs(((Which(("data-race",), _ONE_STORE), _RACE, shared.store),), MAY_FOLLOW, certain=False),
    Belongs(((Which(_RACES), Which(_RACES), shared.refill),), MAY_FOLLOW, mutual=True, certain=False),
    Belongs(((Which(_RACES), _LAPPED, shared.ring),), MAY_FOLLOW, certain=False),
    Belongs(((_OF_REPAIR, _ANY, shared.repair),), SAME, mutual=True),
    Belongs(((_UPDATES, _UPDATES, shared.last_place),), SAME, mutual=True),
    Belongs(((_VERIFIED, _ANY, shared.verified_repair),), SAME, mutual=True),
    Belongs(((_UNPUBLISHED, _UNPUBLISHED, shared.initialisation),), _OF_INIT, mutual=True),
)

# --- order -------------------------------------------------------------------------------------------------------------------

# Of one severity in a report. A misused barrier comes before what may follow from it: races, reads of what was never written, deadlocks.
# An mbarrier that goes on unwaited for comes behind the race that may cause it.
ORDER: Final = ((1, _LAPPED), (-1, _misuse()))
MILDER: Final = Which(situations=("no-warp-sync*",))  # a barrier between warps orders lanes of a warp, too
