"""Raw findings of replays: which of one pair of accesses speaks, what several orders say together, and what a scope explains."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from consan.instrument.findings import UNORDERED, Hazard, Kind, Reason
from consan.reports.verdict import scopes
from consan.reports.verdict.speaking.raw import forward, proven, selected, united, united_records

NAMES = ("kind", "reason", "flags", "site", "other_site", "thread", "other_thread", "hazard", "count", "fence", "narrow_fence")
Raw = dict[str, Any]


def raw(kind: Kind, reason: Reason = Reason.NONE, first: int = 1, second: int = 2, **more: int) -> Raw:
    """A finding whose first side is at site `first`."""
    return dict.fromkeys(NAMES, 0) | {"kind": int(kind), "reason": int(reason), "site": second, "other_site": first, "count": 1} | more


RACE, RACE_BACKWARDS = raw(Kind.DATA_RACE, Reason.NO_BARRIER), raw(Kind.DATA_RACE, Reason.NO_BARRIER, 2, 1)
OF_WARP = raw(Kind.DATA_RACE, Reason.NO_WARP_SYNC)
WAIT = raw(Kind.MISSING_WAIT, Reason.NOT_WAITED, 2, 1)
UNORDERED_WAIT = WAIT | {"flags": UNORDERED}
UNORDERED_IN_TEXT = raw(Kind.MISSING_WAIT, Reason.NOT_WAITED, flags=UNORDERED)
WAITED = raw(Kind.MISSING_WAIT, Reason.WAITED_NO_BARRIER)
OF_WARPGROUPS = RACE | {"thread": 128}
OWN_WAIT = raw(Kind.MISSING_WAIT, Reason.OWN_WARP_WAITED)
FENCE = raw(Kind.MISSING_PROXY_FENCE, Reason.NO_PROXY_FENCE)
OTHER_PAIR = raw(Kind.DATA_RACE, Reason.NO_BARRIER, 3, 4)

SPEAK = {
    "a wait whose copy is ordered": ([RACE, WAIT], [WAIT]),
    "a race as in the text": ([RACE, UNORDERED_WAIT], [RACE]),
    "a wait as in the text": ([RACE, UNORDERED_IN_TEXT], [UNORDERED_IN_TEXT]),
    "a wait, if the race is not as in the text": ([RACE_BACKWARDS, UNORDERED_WAIT], [UNORDERED_WAIT]),
    "a proxy fence, if lanes of a warp race": ([OF_WARP, FENCE], [FENCE]),
    "a race of warps and a proxy fence": ([RACE, FENCE], [RACE, FENCE]),
    "a race with another warpgroup's product": ([OF_WARPGROUPS, OWN_WAIT], [OF_WARPGROUPS]),
    "a race within a warpgroup": ([RACE, OWN_WAIT], [OWN_WAIT]),
    "other pairs": ([WAIT, OTHER_PAIR], [OTHER_PAIR, WAIT]),
}


def names(found: list[Any]) -> list[tuple[int, ...]]:
    return [(each["kind"], each["reason"], each["site"], each["other_site"]) for each in found]


@pytest.mark.parametrize(("found", "left"), SPEAK.values(), ids=SPEAK)
def test_one_finding_speaks_for_a_pair(found: list[Raw], left: list[Raw]) -> None:
    result = selected([each.copy() for each in found])
    assert names(result) == names(left)
    assert not any(each["flags"] for each in result)


def test_a_wait_that_came_in_some_order_lacks_a_barrier() -> None:
    same = WAIT | {"site": 2, "other_site": 1}
    assert names(united([[same], [WAITED]])) == names([WAITED])
    assert names(united([[same, WAITED], [same]])) == names([same, WAITED])
    assert names(united([[same | {"kind": int(Kind.SCOPE)}], [WAITED]])) == names([WAITED]), "whatever kind it has"


def test_after_undefined_behaviour_only_what_both_orders_have_is_kept() -> None:
    assert names(united([[RACE, OTHER_PAIR], [RACE]], undefined=True)) == names([RACE])
    assert names(united([[RACE, OTHER_PAIR], [RACE]])) == names([RACE, OTHER_PAIR])


def test_a_race_is_shown_as_its_sides_come_in_the_text() -> None:
    assert names(united_records([[RACE_BACKWARDS], [RACE]])) == names([RACE])
    read, written = RACE | {"hazard": Hazard.RAW, "flags": 1}, RACE_BACKWARDS | {"hazard": Hazard.WAR, "thread": 5, "other_thread": 6}
    turned = forward([read.copy(), written.copy()])[1]
    assert (turned["site"], turned["other_site"], turned["thread"], turned["hazard"]) == (2, 1, 6, Hazard.RAW)


def test_deadlocks_need_a_proof() -> None:
    stuck = [raw(Kind.DEADLOCK), raw(Kind.WAITER), RACE]
    assert (len(proven(stuck, deadlocks=True)), proven(stuck, deadlocks=False)) == (3, [RACE])


def rows(*found: Raw) -> scopes.Records:
    return np.array([tuple(each[name] for name in NAMES) for each in found], [(name, "<u4") for name in NAMES])


@pytest.mark.parametrize(("by_waits", "reason"), [([RACE], Reason.ARRIVE_SCOPE), ([], Reason.WAIT_SCOPE)], ids=["release", "acquire"])
def test_a_race_that_wide_scopes_remove_is_one_of_scope(by_waits: list[Raw], reason: Reason) -> None:
    """So is the missing fence of other accesses, which goes with it; a race that stays is none."""
    fence = FENCE | {"site": 7, "other_site": 6}
    found = scopes.named(rows(RACE, OTHER_PAIR, fence), lambda: rows(*by_waits, OTHER_PAIR), lambda: rows(OTHER_PAIR))
    assert [(each["kind"], each["reason"]) for each in found] == [(Kind.SCOPE, reason), (Kind.DATA_RACE, Reason.NO_BARRIER)]


def test_a_scope_does_not_hide_what_its_pair_lacks_besides() -> None:
    """A scope may be a warning, and the fence that lacks behind it is an error."""
    found = scopes.named(rows(RACE), rows, lambda: rows(FENCE, WAIT, FENCE | {"site": 7}))
    assert [each["kind"] for each in found] == [Kind.SCOPE, Kind.MISSING_PROXY_FENCE, Kind.MISSING_WAIT]
    launch = scopes.OfLaunch([], list(rows(RACE)))
    of_clusters = scopes.named_of_launch(launch, scopes.OfLaunch, lambda: scopes.OfLaunch([], list(rows(FENCE))), narrow=True, several=True)
    assert [each["kind"] for each in of_clusters] == [Kind.SCOPE, Kind.MISSING_PROXY_FENCE]


def test_a_launch_without_a_narrow_scope_is_not_replayed_again() -> None:
    def never() -> scopes.OfLaunch:
        raise AssertionError

    exact = scopes.OfLaunch(list(rows(raw(Kind.GLOBAL_RACE, Reason.NO_RELEASE))))
    assert scopes.named_of_launch(exact, never, never, narrow=False, several=False) == []


def test_weaker_fences_are_named_for_pairs_without_another_finding() -> None:
    """Whatever kind that has."""
    race, other = raw(Kind.GLOBAL_RACE, Reason.NO_RELEASE), raw(Kind.GLOBAL_RACE, Reason.NO_RELEASE, 3, 4)
    found = scopes.of_weaker_fences(list(rows(raw(Kind.MISSING_ORDER))), list(rows(race, other)))
    assert [(each["site"], each["reason"]) for each in found] == [(4, Reason.WEAKER_FENCES)]
