"""A finding between two ranks, the GPUs of one launch, in their words (SEMANTICS 12, R-RK2): only .sys scope includes both threads.

The catalogue speaks of CTAs of one GPU. What differs between ranks is a table of words.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

from consan.reports.model import Finding

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
    "one CTA": "one rank",
    "each CTA bytes": "each rank bytes",
}
_FOUND: Final = re.compile("|".join(map(re.escape, _WORDS)))


def between_ranks(finding: Finding) -> bool:
    """Whether the two sides are of different ranks."""
    ranks = [access.rank for access in finding.pair]
    return len(set(ranks)) > 1 and None not in ranks


def in_words_of_ranks(finding: Finding) -> Finding:
    """A finding between ranks in their words; others as they are."""
    if not between_ranks(finding):
        return finding
    texts = {name: getattr(finding, name) for name in ("message", "missing", "fix")}
    said: dict[str, Any] = {name: _FOUND.sub(lambda found: _WORDS[found[0]], text) for name, text in texts.items()}
    return replace(finding, **said)
