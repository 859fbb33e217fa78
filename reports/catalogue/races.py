"""The catalogue's rows for data races: pairs of accesses, updates, and races within a statement or between iterations of a loop."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from consan.reports.catalogue.asynchronous import OPERATION_RACES
from consan.reports.catalogue.global_races import MIXED_ATOMICS, READ_ONLY, WEAKER_FENCES, WITHIN_A_CTA
from consan.reports.catalogue.launch_rows import LAUNCH_RACES
from consan.reports.catalogue.situations import CHECKED_FIRST, GENERAL, CatalogueEntry, Situation
from consan.reports.catalogue.tensor_rows import TENSOR_RACES

_RACE_MESSAGES = {
    "RAW": "the {second_role} at {second_at} can run before the {first_role} at {first_at} has stored its value",
    "WAR": "the {second_role} at {second_at} can overwrite the bytes before the {first_role} at {first_at} has loaded them",
    "WAW": "the {first_role} at {first_at} and the {second_role} at {second_at} can land in either order",
}
_WARP_BARRIER = "{warp_barrier_ptx} with both lanes in its mask, between (1) and (2)"
EXCHANGED: Final = "exchanged"  # R-W1: only in fact is the write behind the reads
_CTA_BARRIER = "a barrier that both threads pass between (1) and (2): {cta_barrier_ptx}"

_NEXT = (
    "put {barrier_call} between two iterations of the loop{loop_at}: after the {first_role} at {first_at}, at the end of the loop's body"
    "{other_part}"
)
_BETWEEN = "put {barrier_call} between the {first_role} and the {second_role} of the statement at {first_at}"
_ONE_STORES = "give each thread bytes of its own; or let one thread store, which has the value that is wanted"
_REGISTER = " (load into a register before it, store after it{outside})"
_BEHIND = ", and another one behind it, before other threads read what it has stored"


class _Rest(dict[str, str]):
    """Words for some places of a text: the others stay, for the words of a finding."""

    def __missing__(self, name: str) -> str:
        return f"{{{name}}}"


# A race within one statement, or between two iterations of a loop.
_SHAPED_RACES = {
    f"{name}@{shape}/{hazard}": Situation(
        missing, (fix + more).format_map(_Rest(barrier_call=call, outside=outside)), message
    )
    for name, call, missing, outside in (
        ("no-barrier", "{cta_barrier}", _CTA_BARRIER, ", and the barrier outside of any branch"),
        ("no-warp-sync", "{warp_barrier}", _WARP_BARRIER, ""),
    )
    for shape, hazard, fix, message, more in (
        ("next-iteration", "RAW", _NEXT, "the {second_role} at {second_at}, in the next iteration, can run before the {first_role} at"
         " {first_at} has stored its value{one_part}", ""),
        ("next-iteration", "WAR", _NEXT, "the {second_role} at {second_at}, in the next iteration, can overwrite the bytes before the"
         " {first_role} at {first_at} has loaded them{one_part}", ""),
        ("next-iteration", "WAW", _NEXT, "the {first_role} at {first_at} and the {second_role} at {second_at} of the next iteration can"
         " land in either order{one_part}", ""),
        ("statement", "RAW", _BETWEEN, _RACE_MESSAGES["RAW"], ""),
        ("statement", "WAR", _BETWEEN, _RACE_MESSAGES["WAR"], _REGISTER),
        ("own-update", "RAW", _BETWEEN, _RACE_MESSAGES["RAW"], ""),
        ("own-update", "WAR", _BETWEEN, _RACE_MESSAGES["WAR"], _REGISTER + _BEHIND),
        ("statement", "WAW", _ONE_STORES, _RACE_MESSAGES["WAW"], ""),
    )
}  # fmt: skip

_UPDATED = (
    "several threads update the same bytes in separate steps: the {second_role} at {second_at} can overwrite what another thread has stored"
    " since the {first_role} at {first_at}"
)
_ATOMIC = "{one_update}"
_UPDATE = Situation(
    "{an_update}: load, change and store are separate steps",
    _ATOMIC + "; a barrier between the load and the store does not help, unless only one thread at a time updates the element",
    _UPDATED,
)
_SAME_UPDATE = Situation(
    "{an_update}: each thread has computed the value from what it had loaded, so all but one of the updates are lost",
    _ATOMIC,
    "several threads update the same bytes at {second_at}, and store the same value, in no order",
)
# Threads that store different values by one instruction.
_STORING: Final = (
    ("no-warp-sync", "lane", "lanes of one warp", "", "", "{warp_barrier}"),
    (
        "same-site",
        "thread",
        "several threads",
        ", or an order between the threads",
        "; if warps are to store in turn, put a barrier between",
        "{cta_barrier}",
    ),
)
_ONE_STORE = {
    f"{name}@one-store": Situation(
        f"one {one} that stores{or_order}: the ISA does not say which of the values of one instruction remains",
        f"give each {one} an element of its own, if its value is its own; if one value is wanted, let only the {one} store that has it"
        f"{or_turns}",
        f"{several} store different values to the same bytes at {{second_at}}: which value remains is undefined",
    )
    for name, one, several, or_order, or_turns, _ in _STORING
}
_LOOPED_STORE = {
    f"{name}@looped-store": Situation(
        f"one {one} that stores, or {barrier} between the iterations of the loop{{loop_at}}: {one}s may be in different ones",
        f"if what one {one} stores in an iteration is for another {one} to replace in a later one, put {barrier} at the end of the loop's"
        f" body; else give each {one} an element of its own, or let only the {one} store that has the value",
        f"{several} store different values to the same bytes at {{second_at}}, in one iteration of the loop{{loop_at}} or in different"
        " ones: which value remains is undefined",
    )
    for name, one, several, _, _, barrier in _STORING
}
# Accesses in two branches, such as the roles of warps: no place lies between them.
_DISJOINT = {
    f"no-barrier@disjoint/{hazard}": Situation(
        _CTA_BARRIER + ", or an arrival behind (1) and a wait for it before (2): no thread executes both",
        "arrive after the {first_role} at {first_at} and wait for that before the {second_role} at {second_at}: mbarrier.arrive and"
        " {mbarrier_wait}, or bar.arrive and bar.sync with one number and count; or end the branch of {first_at} before that of"
        " {second_at} begins, and put {cta_barrier} between",
        _RACE_MESSAGES[hazard],
    )
    for hazard in ("RAW", "WAR")
}
# One thread's update of bytes that others update too (`ordering.UPDATE`).
_UPDATES = {
    "no-barrier@update": _UPDATE,
    # The device keeps only the last lane of a warp that has read the bytes; others may have read them at another line.
    "no-warp-sync@update": Situation(
        "an atomic update, or {warp_barrier} between the reads of other lanes and this update",
        "if several lanes update the same element, " + _ATOMIC + "; if each updates its own and others read it, put {warp_barrier}"
        " after their reads and before {first_at}",
        "lanes of one warp read these bytes, and the {second_role} at {second_at} can overwrite them before all have: it puts back what"
        " its own lane has loaded at {first_at}",
    ),
    **{f"{name}@checked{hazard}": row for name in ("no-barrier", "no-warp-sync", "same-site") for hazard, row in CHECKED_FIRST.items()},
    "no-warp-sync@update/WAW": replace(
        _SAME_UPDATE,
        message="lanes of one warp update the same bytes at {second_at}, in no order: of the values that they store, one remains",
    ),
    "same-site@update": replace(_SAME_UPDATE, message="several threads update the same bytes at {second_at}, in no order"),
    "replicated@update": replace(_SAME_UPDATE, severity="note"),
}

NARROW_SCOPE: Final = Situation(
    ".cluster scope on both accesses: {narrow_at} has .cta scope",
    "write .cluster in place of .cta at {narrow_at}",
    "CTAs of one cluster access the same bytes at {first_at} and {second_at}, and the .cta scope of {narrow_at} "
    "does not include the other CTA",
)

DATA_RACE: Final = CatalogueEntry(
    "data-race",
    "data race",
    "error",
    "the {first_role} at {first_at} and the {second_role} at {second_at} touch the same bytes in no order",
    {
        "no-barrier/RAW": Situation(
            _CTA_BARRIER,
            "put {cta_barrier} after the {first_role} at {first_at} and before the {second_role} at {second_at}",
            _RACE_MESSAGES["RAW"],
        ),
        "no-barrier/WAR": Situation(
            _CTA_BARRIER,
            "put {cta_barrier} after the {first_role} at {first_at} and before the {second_role} at {second_at}"
            " (in a loop: at the end of its body)",
            _RACE_MESSAGES["WAR"],
        ),
        "no-barrier/WAW": Situation(
            _CTA_BARRIER,
            "give each thread bytes of its own, or put {cta_barrier} between {first_at} and {second_at}",
            _RACE_MESSAGES["WAW"],
        ),
        "no-barrier": Situation(_CTA_BARRIER, "put {cta_barrier} between {first_at} and {second_at}"),
        **_SHAPED_RACES,
        **_DISJOINT,
        **_ONE_STORE,
        **_LOOPED_STORE,
        **_UPDATES,
        **READ_ONLY,
        **WEAKER_FENCES,
        **MIXED_ATOMICS,
        **WITHIN_A_CTA,
        "same-site": Situation(
            "an order between the threads that execute {second_at}",
            "give each thread bytes of its own, or let one thread store",
            "several threads {second_role_verb} the same bytes at {second_at}, in no order",
        ),
        "same-value": Situation(
            _CTA_BARRIER,
            "let one thread store it, or put {cta_barrier} between the stores",
            "several threads store the same value into the same bytes, at {first_at} and {second_at}, in no order",
            "warning",
        ),
        "replicated": Situation(
            "nothing that changes the result: one instruction of several threads stores one value",
            "nothing, if the threads hold the same value on purpose (Triton does so); else let one thread store it",
            "several threads store the same value into the same bytes at {second_at}, in no order",
            "note",
        ),
        "atomic": Situation(
            "a barrier between the atomic operation and the plain access: an atomic orders nothing but other atomics",
            "put {cta_barrier} between {first_at} and {second_at}, or make both accesses atomic",
            "the {first_role} at {first_at} and the {second_role} at {second_at} touch the same bytes, and only one of them is atomic",
        ),
        "other-lanes": Situation(
            "{warp_barrier_ptx} after the wait of another lane: a wait serves the lanes that executed it",
            "put {warp_barrier} between the wait and {second_at}, or let all lanes wait",
            "the {first_role} at {first_at} was waited for by other lanes of the warp than the one of the {second_role} at {second_at}",
        ),
        "other-lane-released": Situation(
            "{warp_barrier_ptx} before the arrival or release by another lane of the warp: it publishes what its own lane did",
            "put {warp_barrier} after {first_at} and before that arrival or release, or let all lanes of the warp arrive",
            "the {first_role} at {first_at} is by another lane than the one whose release orders {second_at}, and nothing orders the two"
            " lanes",
        ),
        "no-warp-sync": Situation(
            _WARP_BARRIER,
            "put {warp_barrier} between {first_at} and {second_at}; shuffles and votes order no memory",
            "lanes of one warp touch the same bytes at {first_at} and {second_at}, and lanes do not run in step",
        ),
        EXCHANGED: Situation(
            _WARP_BARRIER + " (policy isa: the write needs what the lanes have exchanged of the values that they read, so it comes later in"
            " fact; the exchange orders no memory)",
            "put {warp_barrier} between {first_at} and {second_at}",
            "lanes of one warp touch the same bytes at {first_at} and {second_at}, and only an exchange of registers comes between",
            "warning",
            "isa",
        ),
        **LAUNCH_RACES,
        **OPERATION_RACES,
        **TENSOR_RACES,
        "narrow-scope": NARROW_SCOPE,
        "cluster": Situation(
            "a cluster barrier between (1) and (2): barrier.cluster.arrive and barrier.cluster.wait",
            "put {cluster_barrier} between {first_at} and {second_at}",
            "CTAs of one cluster touch the same bytes at {first_at} and {second_at}, and nothing orders them",
        ),
        "cluster@update": _UPDATE,
        GENERAL: Situation("an edge that orders (1) before (2)", "order {first_at} and {second_at} with a barrier"),
    },
    caption="Nothing orders (1) before (2): they can take effect in either order.",
    by_compiler=True,
)
