"""A finding between two ranks, the GPUs of one launch, in their words (SEMANTICS 12, R-RK2): only .sys scope includes both threads.

The catalogue speaks of CTAs of one GPU. A table of words has the differences between ranks. The grid of a rank is a part of that of the
launch: what a launch has ended with is said by rank.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from consan.reports.model import Access, Finding

_WORDS: Final = {
    "__threadfence()": "__threadfence_system()",
    "cuda.threadfence()": "cuda.threadfence_system()",
    "fence.acq_rel.gpu": "fence.acq_rel.sys",
    "thread_scope_device; an atomic function without _block": "thread_scope_system; an atomic function with _system",
    'scope="gpu"': 'scope="sys"',
    ".gpu": ".sys",
    "several CTAs": "several ranks",
    "CTAs access": "ranks access",
    "different CTAs": "different ranks",
    "between the CTAs": "between the ranks",
    "the other CTA": "the other rank",
    "another CTA": "another rank",
    "a barrier of the grid between the two (cooperative launch)": "a barrier of all ranks between the two",
    "read it in a second kernel, or put": "put",  # launches of two ranks may overlap
    "do that in a launch of its own": "do that in a launch of its own, with a barrier of all ranks between the two",
    "synchronise the CTAs": "synchronise the ranks",
    "one CTA": "one rank",
    "each CTA bytes": "each rank bytes",
    "only for threads of its own CTA or cluster": "only for threads that its scope includes",
    "only to threads of its own CTA or cluster": "only to threads that its scope includes",
    "only from threads of its own CTA or cluster": "only from threads that its scope includes",
    "only to threads of its own CTA": "only to threads that its scope includes",
    "only what its own CTA has published": "only what threads that its scope includes have published",
}
# For a put: the specification of NVSHMEM orders it by these.
_OF_PUTS: Final = {
    "no fence or release publishes": "no nvshmem_quiet(), and no nvshmem_fence() for the rank of that flag, publishes",
    "a fence or a release at .sys scope between": "nvshmem_quiet(), or nvshmem_fence() if the flag is of the rank that the put goes to,"
    " between",
    "__threadfence_system()": "nvshmem_quiet()",
    "make that write a release (cuda::atomic_ref with cuda::memory_order_release)": "send both by one put with signal"
    " (nvshmem_putmem_signal)",
}
_OF_ALL_RANKS: Final = re.compile(r"\.(sys|volatile|mmio)\b")
_FOUND: Final = re.compile("|".join(map(re.escape, _WORDS)))


def between_ranks(finding: Finding) -> bool:
    """Whether the two sides are of different ranks."""
    ranks = [access.rank for access in finding.pair]
    return len(set(ranks)) > 1 and None not in ranks


def within_a_rank(opcode: str) -> bool:
    """Whether the scope of a strong access includes threads of its own rank only. An atomic that names none has .gpu."""
    return not _OF_ALL_RANKS.search(opcode)


def in_words_of_ranks(finding: Finding) -> Finding:
    """A finding between ranks in their words; others as they are."""
    if not between_ranks(finding):
        return finding
    texts = {name: getattr(finding, name) for name in ("message", "missing", "fix")}
    said: dict[str, Any] = {name: _FOUND.sub(lambda found: _WORDS[found[0]], text) for name, text in texts.items()}
    for words, of_put in _OF_PUTS.items() if _is_put(finding.pair[0]) else ():
        said = {name: text.replace(words, of_put) for name, text in said.items()}
    return replace(finding, **said)


def _is_put(access: Access) -> bool:
    """Whether NVSHMEM's header writes there (consan/include/nvshmem.h)."""
    return any(frame.function.startswith("nvshmem") and "put" in frame.function for frame in access.inlined)


def of_ranks(finding: Finding, ranks: int, rank_grid: int) -> Finding:
    """A finding about the end of a launch of several ranks: who is where. `rank_grid`: CTAs of a rank in the last dimension."""
    accesses = tuple(_with_rank(access, rank_grid) for access in finding.accesses)
    waiters = tuple(_waiter(waiter, rank_grid) for waiter in finding.waiters)
    said = f"{finding.message}; {_who_waits(waiters, ranks)}" if waiters else finding.message
    return replace(finding, accesses=accesses, waiters=waiters, message=said)


def _with_rank(access: Access, rank_grid: int) -> Access:
    if access.block is None or access.rank is not None:
        return access
    x, y, z = access.block
    return replace(access, block=(x, y, z % rank_grid), rank=z // rank_grid)


def _waiter(waiter: dict[str, Any], rank_grid: int) -> dict[str, Any]:
    x, y, z = waiter["block"]
    return {**waiter, "block": [x, y, z % rank_grid], "rank": z // rank_grid}


def _who_waits(waiters: Sequence[dict[str, Any]], ranks: int) -> str:
    """`rank 0 waits for element 1 of rank 0, argument 3 (value 0); rank 1 has ended`."""
    awaited: dict[int, list[str]] = {}
    for waiter in waiters:
        awaited.setdefault(waiter["rank"], []).extend([str(waiter["polls"])] if waiter.get("polls") else [])
    for waiter in waiters:  # who waits at a barrier of a rank that polls waits for the threads that poll
        if not awaited[waiter["rank"]]:
            awaited[waiter["rank"]] = [str(each.get("why") or "others") for each in waiters if each["rank"] == waiter["rank"]]
    said = {rank: " and ".join(dict.fromkeys(whats)) for rank, whats in awaited.items()}
    return "; ".join(f"rank {rank} waits for {said[rank]}" if rank in said else f"rank {rank} has ended" for rank in range(ranks))
