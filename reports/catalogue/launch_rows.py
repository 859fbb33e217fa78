"""The catalogue's rows for cluster launch control (instrument/SEMANTICS.md, section 4.5)."""

from __future__ import annotations

from typing import Final

from consan.reports.catalogue.situations import GENERAL, CatalogueEntry, Situation

_RESPONSE: Final = "the {second_role} at {second_at} may come before the response to the request at {first_at}"
LAUNCH_WAITS: Final = {
    "not-waited:try_cancel": Situation(
        "a successful wait for {group} before this {second_role}",
        "wait with {wait} ({wait_cpp}) before {second_at}, in every thread that reads the response; or in one thread, with {cta_barrier}"
        " after it",
        _RESPONSE,
    ),
    "waited-no-barrier:try_cancel": Situation(
        "an edge from the wait for {group} to (2): only another thread has waited",
        "wait with {wait} ({wait_cpp}) in this thread too, or put {cta_barrier} between the other thread's wait and {second_at}",
        _RESPONSE + ": another thread has waited for it, and nothing orders that wait before (2)",
    ),
    "refilled:try_cancel": Situation(
        "a successful wait for {group} before this {second_role}; or, if it reads the response before, an arrival after it",
        "wait with {wait} ({wait_cpp}) before {second_at}; or move what lets the next request come after {second_at}",
        _RESPONSE,
    ),
}
LAUNCH_RACES: Final = {
    "requests-overlap": Situation(
        "a wait for the response of (1), by all that read it, before the request (2)",
        "give each request 16 bytes of its own; or issue {second_at} only after all readers of the response of {first_at} have arrived on"
        ' an "empty" mbarrier of the slot ({arrive})',
        "the requests at {first_at} and {second_at} are in flight together, and their responses go to the same bytes",
    ),
    "response-overwritten": Situation(
        'an edge from (1) to the thread that issues (2): the "empty" mbarrier of this slot, or a barrier',
        "let every thread that reads the response arrive on the slot's empty mbarrier ({arrive}) after {first_at}, and let the thread of"
        " {second_at} wait for that phase ({acquire})",
        "the request at {second_at} can overwrite the response before the {first_role} at {first_at} has read it",
    ),
}
LAUNCH_AT_EXIT: Final = {
    "exit:try_cancel": Situation(
        "a wait for {group} by a thread of each CTA that gets the response",
        "wait with {wait} ({wait_cpp}) in each CTA to which the response of {first_at} goes, before it returns",
        "the response to the request at {first_at} can come when its CTA has exited: no wait for {group} has succeeded there",
    ),
}
CLC_MISUSE: Final = CatalogueEntry(
    "clc-misuse",
    "misuse of cluster launch control",
    "error",
    "cluster launch control is used against its protocol at {first_at}",
    {
        "request-after-refusal": Situation(
            "the end of the loop where is_canceled was false",
            "do not request again after {first_at} has shown that no cluster was cancelled: leave the loop, in all threads that request",
            "clusterlaunchcontrol.try_cancel at {second_at} asks again after a refusal, which the CTA has seen at {first_at}",
        ),
        "refused-id-used": Situation(
            "a test of is_canceled: the id in a refusal is undefined",
            "use what {first_at} gives only where clusterlaunchcontrol.query_cancel.is_canceled of the same response is true",
            "{second_at} depends on the id that {first_at} took from a refusal",
        ),
        "requests-of-lanes": Situation(
            "one thread that requests: each lane that executes the instruction is a request",
            "let one thread ({one_thread}) execute {first_at}",
            "several lanes of a warp request at {first_at}, with the same bytes for their responses",
        ),
        GENERAL: Situation("the protocol of cluster launch control", "see `consan explain clc-misuse`"),
    },
    caption="Cluster launch control is used against its protocol.",
    shape="misuse",
    by_compiler=True,
)
