"""Which of two findings speaks, and which belongs to the other one: relations between kinds, reasons and situations, as data.

A relation names the finding that leads, the other one, and what the two share. `precedence` reads the tables.
"""

from __future__ import annotations

from typing import Final

from consan.instrument.findings import FindingRecord, Kind, Reason
from consan.reports.catalogue.global_races import FLAG_SIDES, NO_SIDE
from consan.reports.catalogue.situations import FREED_EARLY
from consan.reports.model import Finding
from consan.reports.records.finding_records import kernel_of
from consan.reports.verdict.speaking import shared
from consan.reports.verdict.speaking.terms import Belongs, Raw, RootWords, Silences, Which, WhichRaw, WhichRecord, raws

# --- raw findings of one pair of accesses (SEMANTICS section 8) ------------------------------------------------------------


def _of_pair(speaks: WhichRaw, silent: WhichRaw) -> Silences[Raw]:
    return Silences(speaks.has, silent.has, lambda raw: (raw.pair,))


def _is_of_two_warpgroups(raw: Raw) -> bool:
    return raw.kind == Kind.DATA_RACE and int(raw.record["thread"]) // _WARPGROUP != int(raw.record["other_thread"]) // _WARPGROUP


_WARPGROUP: Final = 128  # threads
_WAIT: Final = Kind.MISSING_WAIT
_NO_WAIT: Final = (Reason.NOT_COMMITTED, Reason.NOT_WAITED)
# An unordered copy and access are a race in one order, a missing wait in the other: the one whose sides come as in the text is reported.
OF_A_PAIR: Final = (
    # A race with the product of another warpgroup is an error, what remains within the own one is a warning.
    Silences(_is_of_two_warpgroups, raws(_WAIT, Reason.OWN_WARP_WAITED).has, lambda raw: (raw.pair,)),
    _of_pair(raws(_WAIT, ordered=True), raws(Kind.DATA_RACE)),
    _of_pair(raws(Kind.DATA_RACE, in_text=True), raws(_WAIT)),
    _of_pair(raws(_WAIT), raws(Kind.DATA_RACE)),
    _of_pair(raws(Kind.MISSING_PROXY_FENCE), raws(Kind.DATA_RACE, Reason.NO_WARP_SYNC)),
)
OF_AN_ORDER: Final = (_of_pair(raws(_WAIT, *_NO_WAIT), raws(_WAIT, Reason.WAITED_NO_BARRIER)),)
# A barrier is missing, not the wait: in some order the wait came before the access, whichever threads met.
OF_ORDERS: Final = (_of_pair(raws(_WAIT, Reason.WAITED_NO_BARRIER), raws(None, *_NO_WAIT)),)

# --- records of a launch, and ends of launches -----------------------------------------------------------------------------

OF_A_LAUNCH: Final[tuple[Silences[FindingRecord], ...]] = (
    # An uninitialised read that a later, unordered write explains is one defect: the engine reports the pair as a data race, too.
    Silences(
        WhichRecord(Kind.READ_EXPLAINED).has,
        WhichRecord(Kind.UNINITIALIZED_READ).has,
        lambda record: ((record.module, record.site),),
        lambda record: record.count,
    ),
    # The missing wait is the same, and the conflicts before the exit say more.
    Silences(
        WhichRecord(_WAIT, copies=True).has,
        WhichRecord(Kind.LIFETIME, (Reason.EXIT,), copies=True).has,
        lambda record: (kernel_of(record),),
    ),
)
_OUTSIDE: Final = Which(("out-of-bounds",))
# A hook or a record counts every thread, a fault only the first one. A barrier that is misused traps, too: the misuse is the cause.
OF_ENDS: Final[tuple[Silences[Finding], ...]] = (
    Silences(_OUTSIDE.has, _OUTSIDE.has, lambda finding: (shared.merge_key(finding),)),
    Silences(Which(("tcgen05-misuse", "barrier-misuse")).has, Which(("tcgen05-misuse", "fault")).has, shared.lines),
)

# --- what belongs to another finding ---------------------------------------------------------------------------------------

SAME: Final = RootWords("Its cause is that of {root}", "one repair for {root} and this one: {fix}")
MAY_FOLLOW: Final = RootWords("It may follow from {root}", "repair {root} first; if this one stays: {fix}")
FOLLOWS: Final = RootWords("It follows from {root}", "repair {root} first")
_OF_START: Final = RootWords(SAME.message, "the cluster barrier that repairs {root} comes before {last}, and repairs this one too")
_OF_CTAS: Final = RootWords(SAME.message, "the repair of {root}, which is for several CTAs, serves the threads of one CTA too")
_OF_VARIABLE: Final = RootWords(SAME.message, "order all accesses of the variable of {root}: {fix}")
_OF_INIT: Final = RootWords(SAME.message, "let the barrier that repairs {root} come before {last} too")

_RACES: Final = ("data-race", "missing-wait")
_FOLLOWING: Final = Which((*_RACES, "lifetime", "deadlock"))
_STUCK: Final = Which(("deadlock",))
_LIFETIME: Final = Which(("lifetime",))
_TOUCHED: Final = Which(("register-hazard",), ("touched-before-wait", "not-committed"))
_UNCOMMITTED: Final = Which(("missing-wait",), ("tensor-not-committed",))  # one commit is for all that use its cells
_UNSEEN_PRODUCT: Final = Which(("missing-wait",), ("tensor-not-waited*",))
_FREED_EARLY: Final = Which(("data-race",), (FREED_EARLY,))
_RACE: Final = Which(("data-race",))
_ANY: Final = Which()


def _misuse(*situations: str) -> Which:
    return Which(("barrier-misuse",), situations)


def _global(*situations: str) -> Which:
    return Which(("global-race",), situations)


# An mbarrier whose phases mean nothing any more.
_BROKEN: Final = _misuse(
    *("not-initialised", "invalidated", "initialised-twice", "init-not-published*", "bytes-used"),
    *("too-many-arrivals", "tx-range", "count-range", "no-complete", "bytes-not-announced", "bytes-too-few", "expect-unordered"),
)
_EARLY_REFILL: Final = Which(("data-race",), ("refilled-too-early",))
_OF_A_FILL: Final = Which(("missing-wait",), ("refilled", "not-waited"))
_LAPPED: Final = _misuse("phase-lapped")  # an mbarrier that goes on unwaited for: of a race it is the effect
_AT_BARRIERS: Final = Which(("barrier-misuse", "data-race"), ("shared-id", "no-barrier*"))
_NOT_STARTED: Final = Which(("lifetime",), ("not-started",))
_UNPUBLISHED: Final = _misuse("init-not-published*")
_NARROW_EDGE: Final = Which(("scope",), but=("store-scope",))
_WEAK: Final = _global("weak-access")
_UNRELATED: Final = ("no-synchronisation*", "no-cluster-barrier*", "released-*")
_AT_A_FLAG: Final = tuple(f"{name}*" for name in FLAG_SIDES)
_UPDATES: Final = Which(situations=("*@update", "*@checked"))
_READ: Final = Which((*_RACES, "global-race", "scope"))  # what it has read may be an index
_AT_ADDRESS: Final = Which((*_RACES, "global-race", "out-of-bounds"))
_IN_CTA: Final = Which(("data-race",), ("no-barrier*", "no-warp-sync*"))  # a barrier of the grid or another buffer serves the CTA, too
# Each thread keeps a value of its own in the one element: there is no right order.
_ONE_STORE: Final = ("*@one-store", "*@looped-store")
_BY_TIMING: Final = Which(("missing-order",), ("no-barrier*", "no-warp-sync*"))  # volatile accesses
_OF_REPAIR: Final = Which(known="culprit")
_VERIFIED: Final = Which(known="verified")

BELONGS: Final = (
    # A copy into a peer's stage that comes too early brings its bytes before the receiver has announced them.
    Belongs(((_EARLY_REFILL, _misuse("bytes-not-announced"), shared.place_of_peer),), MAY_FOLLOW, certain=False),
    # Bytes that nobody announces let waits return too early, and then hand stages back.
    Belongs(((_misuse("bytes-too-few"), _EARLY_REFILL, shared.place_of_peer),), MAY_FOLLOW, certain=False),
    Belongs(((_BROKEN, _FOLLOWING, shared.misused_mbarrier), (_LAPPED, _STUCK, shared.misused_mbarrier)), FOLLOWS),
    Belongs(((_misuse("counts-disagree", "divergent"), _STUCK, shared.waited_barrier),), FOLLOWS),
    Belongs(((Which(("missing-wait",)), _LIFETIME, shared.copy), (_TOUCHED, _LIFETIME, shared.product)), FOLLOWS),
    Belongs(((_UNCOMMITTED, _LIFETIME, shared.product),), FOLLOWS),
    # A wait for the last commit that every later use of the cells counts on, and the end of the kernel.
    Belongs(((_UNSEEN_PRODUCT, Which(("missing-wait", "lifetime")), shared.product_read),), MAY_FOLLOW, certain=False),
    Belongs(((_FREED_EARLY, Which(("missing-wait",), ("tensor-waited-no-barrier*",)), shared.last_place),), SAME),
    Belongs(((_misuse("counts-disagree"), _AT_BARRIERS, shared.kernel),), MAY_FOLLOW, certain=False),
    Belongs(((_TOUCHED, _LIFETIME, shared.product_statement),), MAY_FOLLOW, certain=False),
    Belongs(((_UNCOMMITTED, _UNCOMMITTED, shared.product),), SAME, mutual=True),
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
    Belongs(tuple((each, _NOT_STARTED, shared.last_place) for each in (Which(("data-race",), ("cluster",)), _UNPUBLISHED)), _OF_START),
    Belongs(((Which(situations=_ONE_STORE), Which(situations=_ONE_STORE), shared.variable),), SAME, mutual=True),
    Belongs(((_BY_TIMING, _BY_TIMING, shared.named_variable),), _OF_VARIABLE, mutual=True),
    Belongs(((Which(("data-race",), _ONE_STORE), _RACE, shared.store),), MAY_FOLLOW, certain=False),
    # Two threads that store to one element may have left another one out.
    Belongs(((Which(("data-race",), _ONE_STORE), Which(("uninitialized-read",)), shared.filling_store),), MAY_FOLLOW, certain=False),
    Belongs(((_READ, _AT_ADDRESS, shared.address),), MAY_FOLLOW, certain=False),
    Belongs(((_global("no-synchronisation"), _IN_CTA, shared.places),), MAY_FOLLOW, certain=False),
    Belongs(
        tuple((_global(name), Which(("data-race",), (f"{name}*",)), shared.places) for name in (*FLAG_SIDES, "not-coherent")), _OF_CTAS
    ),
    Belongs(((Which(_RACES), Which(("missing-wait",)), shared.refill),), MAY_FOLLOW, certain=False),
    # A reader that does not wait arrives too often, and then the copy does not wait for it.
    Belongs(((_OF_A_FILL, _EARLY_REFILL, shared.places_handed_back),), MAY_FOLLOW, certain=False),
    Belongs(((_EARLY_REFILL, _OF_A_FILL, shared.places_never_freed),), SAME),
    Belongs(((Which(_RACES), _LAPPED, shared.ring),), MAY_FOLLOW, certain=False),
    Belongs(((_OF_REPAIR, _ANY, shared.repair),), SAME, mutual=True),
    Belongs(((_UPDATES, _UPDATES, shared.last_place),), SAME, mutual=True),
    Belongs(((_UPDATES, _global("replicated", "same-value"), shared.last_place),), SAME),  # updates that have lost the same
    Belongs(((_VERIFIED, _ANY, shared.verified_repair),), SAME, mutual=True),
    Belongs(((_UNPUBLISHED, _UNPUBLISHED, shared.initialisation),), _OF_INIT, mutual=True),
)

# --- order -------------------------------------------------------------------------------------------------------------------

# The order within a severity. A misused barrier comes before what may follow from it: races, reads of what was never written, deadlocks.
# An mbarrier that goes on unwaited for comes behind the race that may cause it.
ORDER: Final = ((1, _LAPPED), (-1, _misuse()))
MILDER: Final = Which(situations=("no-warp-sync*", "other-lane*"))  # a barrier between warps orders lanes of a warp, too
