"""Catalogue rows for missing proxy fences. Names and placeholders are those of asynchronous.py."""

from __future__ import annotations

from typing import Final

from consan.reports.catalogue.situations import Situation

_FENCE_NAMES = "fence.proxy.async.shared::cta ({proxy_fence})"
_ROWS: Final = {
    "no-proxy-fence/RAW": Situation(
        "a proxy fence for shared memory between (1), in the generic proxy (ordinary accesses and cp.async),"
        " and (2), in the async proxy (bulk copies, wgmma)",
        f"execute {_FENCE_NAMES} in every thread that writes, after {{first_at}} and before the barrier that orders {{second_at}}",
        "the {second_role} at {second_at} reads through the async proxy and may miss what the {first_role} at {first_at} stored through"
        " the generic proxy: their threads are ordered, but no proxy fence lies between",
    ),
    "no-proxy-fence": Situation(
        "a proxy fence for shared memory between (1), in the generic proxy (ordinary accesses and cp.async),"
        " and (2), in the async proxy (bulk copies, wgmma)",
        f"execute {_FENCE_NAMES} in every thread that touched the bytes, after {{first_at}} and before the barrier that orders"
        " {second_at}",
        "the {second_role} at {second_at} (async proxy) can overtake the {first_role} at {first_at} (generic proxy): their threads are"
        " ordered, but no proxy fence lies between",
    ),
    "global-no-proxy-fence": Situation(
        "a proxy fence for global memory between (1), in the generic proxy (ordinary accesses), and (2), in the async proxy (bulk copies)",
        "execute fence.proxy.async.global or fence.proxy.async ({global_proxy_fence}) in every thread that writes, after"
        " {first_at} and before the barrier that orders {second_at}",
        "the {second_role} at {second_at} accesses global memory through the async proxy and may miss what the {first_role} at {first_at}"
        " stored through the generic proxy: their threads are ordered, but no proxy fence for global memory lies between",
    ),
    "outer-no-proxy-fence": Situation(
        "a proxy fence for global memory between (1), in the generic proxy (ordinary accesses), and (2), in the async proxy (bulk copies)"
        " of another CTA",
        "execute fence.proxy.async.global or fence.proxy.async ({global_proxy_fence}) in every thread that writes, after {first_at} and"
        " before the release; or behind the acquire, in the thread that issues {second_at}",
        "the {second_role} at {second_at} accesses global memory through the async proxy and may miss what the {first_role} at {first_at}"
        " of another CTA stored through the generic proxy: the CTAs are ordered, but no proxy fence for global memory lies between",
    ),
    "global-poll-no-fence": Situation(
        "fence.proxy.async.global between the flag and the bulk load (policy isa, D14: shipped libraries leave it out)",
        "execute fence.proxy.async.global after {first_at} has seen the flag, before {second_at}",
        "the {second_role} at {second_at} reads through the async proxy, perhaps the data that the flag read at {first_at} announces: the"
        " flag was read through the generic proxy, and no proxy fence for global memory lies between",
        "note",
        "isa",
    ),
    "global-map-not-acquired": Situation(
        "fence.proxy.tensormap::generic.acquire of this map, after (1) and before (2)",
        "execute fence.proxy.tensormap::generic.acquire.gpu [map], 128 ({map_acquire}) after {first_at}, in the thread"
        " that issues {second_at} or before a barrier that orders it",
        "the {second_role} at {second_at} reads its tensor map through the tensormap proxy and may miss what the {first_role} at {first_at}"
        " stored: no acquire fence for the map lies between",
    ),
    "global-map-not-released": Situation(
        "fence.proxy.tensormap::generic.release by the thread that changed the map, after (1)",
        "execute fence.proxy.tensormap::generic.release.gpu after {first_at} (or publish the map with tensormap.cp_fenceproxy), then the"
        " acquire fence",
        "the {second_role} at {second_at} reads its tensor map through the tensormap proxy and may miss what the {first_role} at {first_at}"
        " stored: no release fence follows the change",
    ),
    "writer-no-fence": Situation(
        "a proxy fence in the writing thread, before the barrier (policy isa, D2: the ISA leaves open whether a fence after it serves)",
        f"execute {_FENCE_NAMES} in every thread that writes, after {{first_at}} and before the barrier that orders {{second_at}}",
        "the {first_role} at {first_at} (generic proxy) is fenced for the {second_role} at {second_at} (async proxy) only after the"
        " barrier, by another thread",
        "note",
        "isa",
    ),
    "read-no-fence": Situation(
        "a proxy fence between the read (generic proxy) and the asynchronous write (async proxy) (policy isa, D1: shipped pipelines"
        " leave it out)",
        f"execute {_FENCE_NAMES} in the reading threads, after {{first_at}} and before they release the bytes",
        "the {second_role} at {second_at} (async proxy) can overwrite the bytes before the {first_role} at {first_at} (generic proxy)"
        " has loaded them: their threads are ordered, but no proxy fence lies between",
        "warning",
        "isa",
    ),
    "across-ctas": Situation(
        "a proxy fence between the completion of (1) and (2): two operations of different CTAs through the async proxy (policy isa, D4: the"
        " ISA keeps their order within a CTA only; shipped libraries leave the fence out)",
        "execute fence.proxy.async ({global_proxy_fence}) after the wait for {first_at} and before {second_at}",
        "the {first_role} at {first_at} and the {second_role} at {second_at} use the same bytes through the async proxy; they are of two"
        " CTAs, and no proxy fence lies between",
        "warning",
        "isa",
    ),
    "copy-no-fence": Situation(
        "a proxy fence between the copy, which writes through the generic proxy, and the matrix product, which reads through the async"
        " proxy (policy isa: shipped libraries leave it out)",
        f"execute {_FENCE_NAMES} after the wait for {{first_at}} and before the barrier that orders {{second_at}}",
        "the {second_role} at {second_at} reads through the async proxy what the {first_role} at {first_at} stored through the generic"
        " proxy: it has been waited for, but no proxy fence lies between",
        "warning",
        "isa",
    ),
}
_MAPS = ("map-not-acquired", "map-not-released")
PROXY_FENCES: Final = (
    _ROWS
    | {f"{space}-across-ctas": _ROWS["across-ctas"] for space in ("global", "outer")}
    | {f"outer-{name}": _ROWS[f"global-{name}"] for name in _MAPS}
)
