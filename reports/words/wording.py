"""Chooses the situation of a finding from the catalogue and fills in its words.

A kind has situations: the missing edge decides `missing` and `fix`, and sometimes the sentence and the severity. A
situation may be specific to an operation and a hazard: lookup tries "name:OPERATION/HAZARD", "name:OPERATION",
"name/HAZARD", then "name". "name@SHAPE" wins over all: accesses in one statement, or in two iterations of a loop. The decoder
calls `describe` once for each finding, so that all renderers print the same words.

Not decided here: whether something is a finding and its kind (the shadow runtime decides), and how it is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from consan.reports.catalogue.catalogue import KINDS
from consan.reports.catalogue.global_races import FLAG_SIDES, OF_A_GRID
from consan.reports.catalogue.order_rows import OF_ONE_CTA
from consan.reports.catalogue.situations import (
    COMMITS,
    FREED_EARLY,
    FREEING,
    GENERAL,
    SIGNALLED,
    SIGNALLED_COPY,
    UNPUBLISHED_TO_PEER,
    UNSEEN,
    WAITS,
    CatalogueEntry,
    Situation,
)
from consan.reports.model import Access, AsyncInfo, Finding, Frame
from consan.reports.source.names import DIRECTLY
from consan.reports.source.places import located
from consan.reports.words import frameworks
from consan.reports.words.between_ranks import between_ranks, within_a_rank
from consan.reports.words.derived import flag_words, update_words

if TYPE_CHECKING:
    from consan.instrument.sites import Place, Site

__all__ = ["GENERAL", "KINDS", "WAITS", "describe", "infer", "place", "place_of", "place_of_waiter", "select", "words_of"]


def describe(finding: Finding, situation: str | None = None, shape: str = "", *, framework: str = frameworks.CUDA, **facts: Any) -> Finding:
    """Fill in severity, message, missing and fix, in the words of a framework (frameworks.py).

    `shape`: how the accesses lie in the program (`ordering.py`), if that needs its own wording. `facts` are what the
    accesses do not hold: `leave` (the largest N of a wait_group that would cover the copy), `barrier` ("named barrier 1"), `phase`,
    `parity`, `expected` and `tx` of an mbarrier, `lacking` (what a deadlock waits for), `registers` ("%f1, %f2"), `point`, `came` and
    `others` (a divergence), `bytes` (a phrase), `shared_bytes` (of the CTA) and `dynamic` (whether the kernel has dynamic shared memory).
    """
    kind = KINDS[finding.kind]
    action = _operation(finding)
    name = refined(finding, situation)
    chosen = select(kind, name, finding.hazard, action.kind if action else "", shape)
    words = words_of(finding, facts, framework)
    to_change = {**words, **callers(finding)}
    return replace(
        finding,
        severity=chosen.severity or kind.severity,
        policy=chosen.policy,
        message=frameworks.tidy((chosen.message or kind.message).format_map(words)),
        missing=frameworks.tidy(chosen.missing.format_map(words)),
        fix=frameworks.tidy(chosen.fix.format_map(to_change)) + _advice(finding, chosen, framework),
        situation=f"{name}@{shape}" if f"{name}@{shape}" in kind.situations else name,
    )


def _advice(finding: Finding, chosen: Situation, framework: str) -> str:
    """The framework's advice; none for a note."""
    in_global = finding.kind in ("data-race", "scope") and bool(finding.accesses) and _first(finding).in_global
    return "" if chosen.severity == "note" else frameworks.advice(framework, finding.kind, in_global=in_global)


def refined(finding: Finding, situation: str | None) -> str:
    """Refine the situation: the device reports only the missing edge, the accesses select among several wordings."""
    if situation in ("arrive-scope", "wait-scope") and finding.accesses and _first(finding).cluster_rank is None:
        return f"{OF_A_GRID}-{situation}"
    in_cluster = situation == "access-scope" and bool(finding.accesses) and not _first(finding).in_global
    if (in_cluster or (situation == "arrive-scope" and finding.accesses)) and {"release", "cta"} <= set(_first(finding).op.split(".")):
        return "store-scope"  # (1) is the release itself
    if in_cluster:
        return "narrow-scope"
    if situation in UNSEEN and _is_of_peer(finding):
        return UNSEEN[situation]
    if situation == "not-committed" and finding.barrier and (copy := _operation(finding)) and copy.kind == "cp.async":
        return SIGNALLED_COPY
    if situation == "init-not-published" and len({access.cluster_rank for access in finding.pair}) > 1:
        return UNPUBLISHED_TO_PEER
    if situation == "tensor-no-barrier" and tuple(access.role for access in finding.pair) in FREEING:
        return FREED_EARLY
    if finding.kind == "missing-order" and situation in FLAG_SIDES and len({access.block for access in finding.accesses}) == 1:
        return f"{OF_ONE_CTA}-{situation}"
    between_operations = len(finding.accesses) > 1 and all(access.asynchronous for access in finding.accesses)
    if situation in (None, "no-barrier") or (situation == "no-warp-sync" and (between_operations or _copy_first(finding))):
        return infer(finding)
    return situation


def select(kind: CatalogueEntry, situation: str, hazard: str | None, operation: str = "", shape: str = "") -> Situation:
    """The row for a situation, most specific first (shape, operation, hazard). A name that the kind lacks gives the general row."""
    special, shaped = f"{situation}:{operation}", f"{situation}@{shape}"
    names = (f"{shaped}/{hazard}", shaped, f"{special}/{hazard}", special, f"{situation}/{hazard}", situation, GENERAL)
    return next(kind.situations[name] for name in names if name in kind.situations)


def _first(finding: Finding) -> Access:
    return finding.accesses[0]


def _last(finding: Finding) -> Access:
    return finding.pair[-1]


def _one_atomic(finding: Finding) -> bool:
    return len({"atomic" in access.role for access in finding.accesses}) == 2


def _narrow(finding: Finding) -> tuple[Access, ...]:
    """The accesses whose scope excludes the other CTA, or the other rank, if both are strong."""
    narrow = {"cta", "cluster"} if _first(finding).in_global else {"cta"}
    near = within_a_rank if between_ranks(finding) else lambda opcode: not narrow.isdisjoint(opcode.split("."))
    return tuple(access for access in finding.pair if all(map(_is_strong, finding.pair)) and near(access.op))


def _is_strong(access: Access) -> bool:
    return not _STRONG.isdisjoint(access.op.split("."))


def _by_strength(finding: Finding) -> tuple[Access, Access]:
    """The weak access and the strong one, where one is weak."""
    weak, strong = sorted((_first(finding), _last(finding)), key=_is_strong)
    return weak, strong


def _is_of_peer(finding: Finding) -> bool:
    """Whether the mbarrier of the operation is in another CTA of the cluster than (2), whose threads cannot wait at it."""
    rank = (finding.barrier or {}).get("cluster_rank")
    return rank is not None and bool(finding.accesses) and _last(finding).cluster_rank not in (None, rank)


def _of_issuer(finding: Finding) -> str:
    """Whose empty mbarrier counts, where a copy of another CTA of the cluster refills a stage."""
    rank = _last(finding).cluster_rank
    if rank is None or _first(finding).block == _last(finding).block:
        return ""
    consumers = "the consumers of each CTA that the copy writes to"
    return f"; that mbarrier is in the CTA of rank {rank}, and {consumers} arrive at it, at .cluster scope"


def _same_warp(finding: Finding) -> bool:
    first, last = _first(finding), _last(finding)
    return first.warp is not None and (first.block, first.warp) == (last.block, last.warp)


def _operation(finding: Finding) -> AsyncInfo | None:
    """The operation that the words are about: (1) for a missing wait, else the only one."""
    return next((access.asynchronous for access in finding.accesses if access.asynchronous), None)


def _engine(finding: Finding, access: Access | None = None) -> bool:
    """Whether (2), or the access, is one of a bulk copy or a matrix product: a CTA barrier alone does not order it."""
    action = (access or _last(finding)).asynchronous
    return action is not None and action.kind != "cp.async"


def _copy_first(finding: Finding) -> bool:
    """Whether (1) is a `cp.async`: no barrier orders (2) behind it, unless its thread has waited for it."""
    return bool(finding.accesses) and (action := _first(finding).asynchronous) is not None and action.kind == "cp.async"


def _requests(finding: Finding) -> int:
    """How many of the accesses are requests of cluster launch control."""
    return sum(access.asynchronous is not None and access.asynchronous.kind == "try_cancel" for access in finding.accesses)


_STRONG: Final = frozenset(("atom", "red", "reduce", "relaxed", "acquire", "release", "acq_rel", "volatile"))
# Tried in order if the decoder gives no situation. Cluster first: its CTAs have equal warp numbers.
_INFERENCES: Final[dict[str, tuple[tuple[str, Callable[[Finding], bool]], ...]]] = {
    "data-race": (
        ("narrow-scope", lambda f: _first(f).block != _last(f).block and bool(_narrow(f)) and not any(a.asynchronous for a in f.accesses)),
        ("cluster", lambda f: _first(f).block != _last(f).block and not _engine(f)),
        ("requests-overlap", lambda f: _requests(f) == 2),
        ("response-overwritten", lambda f: _requests(f) == 1 and f.hazard == "WAR"),
        # Not about lanes, unless the device says so.
        ("loads-overlap", lambda f: _engine(f) and f.hazard == "WAW" and _first(f).asynchronous is not None),
        ("refilled-too-early", lambda f: _engine(f) and f.hazard == "WAR"),
        ("global-operation-unordered", lambda f: _engine(f) and f.hazard == "RAW" and _last(f).in_global),
        ("operation-unordered", lambda f: _engine(f) or (f.hazard == "WAR" and _engine(f, _first(f)))),
        ("copy-not-awaited", _copy_first),
        ("no-warp-sync", _same_warp),
        ("atomic", _one_atomic),
        ("same-site", lambda f: _first(f).statement == _last(f).statement),
        ("no-barrier", lambda f: True),
    ),
    "missing-order": (
        ("cluster", lambda f: _first(f).block != _last(f).block),
        ("no-warp-sync", _same_warp),
        ("no-barrier", lambda f: True),
    ),
    "missing-wait": (
        ("overlapping-copies", lambda f: len(f.accesses) > 1 and all(access.asynchronous for access in f.accesses)),
        ("not-waited", lambda f: True),
    ),
    "uninitialized-read": (("written-later", lambda f: len(f.accesses) > 1), ("operation", _engine)),
    "out-of-bounds": (
        ("range", lambda f: _engine(f) and _first(f).in_shared),
        ("shared", lambda f: _first(f).in_shared),
    ),
    "lifetime": (("exit", lambda f: _first(f).asynchronous is not None),),
}


def infer(finding: Finding) -> str:
    """The situation inferred from the accesses."""
    rules = _INFERENCES.get(finding.kind, ()) if finding.accesses else ()
    return next((name for name, holds in rules if holds(finding)), GENERAL)


# --- the words of the templates ----------------------------------------------------------------------------------------

_VERBS: Final = {"read": "read", "write": "write"}


def place(access: Access) -> str:
    """`kernel.cu:14`, `helpers.cuh:41 (called at kernel.cu:9)`, or the PTX line where there is no source line."""
    if access.line:
        outermost = access.inlined[-1] if access.inlined else None
        called = f" (called at {_short(outermost)})" if outermost is not None and outermost.file != access.file else ""
        return _short(access) + called
    return f"PTX line {access.ptx_line}" if access.ptx_line else "an unknown place"


def place_of(at: Place | Site) -> str:
    """The same for an instruction."""
    return place(Access("", "", **located(at)))


def called_at(at: Place | Site) -> str:
    """The line of the call in the kernel, if the instruction was inlined; else its own."""
    return _short(Access("", "", file=at.inlined[-1].file, line=at.inlined[-1].line)) if at.inlined else place_of(at)


def place_of_waiter(waiter: Mapping[str, Any]) -> str:
    """The same for a thread that waits."""
    return place(Access("", "", **{name: waiter[name] for name in ("file", "line", "ptx_line") if waiter.get(name)}))


def _short(at: Access | Frame) -> str:
    return f"{at.file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{at.line}"


def words_of(finding: Finding, facts: dict[str, Any], framework: str = frameworks.CUDA) -> dict[str, str]:
    """Every word that a template may use. Given facts override those derived from the accesses."""
    words = _access_words(finding) if finding.accesses else dict.fromkeys(_ACCESS_WORDS, "an unknown place")
    operation = words["operation"]
    given = {name: str(value) for name, value in facts.items() if value is not None}
    unknown = {
        "leave": "0",
        "barrier": "the barrier",
        "phase": "of the copy",
        "number": "these",
        "parity": "(phase & 1)",
        "expected": "its init",
        "tx": "not 0",
        "lacking": "a signal",
        "registers": "registers",
        "limit": _limit(facts.get("shared_bytes")),
        "more_memory": ", or launch with more dynamic shared memory" if facts.get("dynamic") and not _below(finding) else "",
        "fence_at": "",
        "init_in_cluster": _INIT_IN_CLUSTER if any(access.cluster_rank is not None for access in finding.accesses) else "",
        "of_issuer": _of_issuer(finding) if finding.accesses else "",
        "element": "",
        "loop_at": "",
        "one_part": "",
        "other_part": "",
        "keep": "",
        "alignment": "the address is not a multiple of its width",
        "larger": "" if finding.accesses and _first(finding).in_shared else ", or make the buffer larger",
        **dict.fromkeys(("flag_write_at", "flag_read_at", "fence_at"), "an unknown place"),
        **dict.fromkeys(("first_kernel", "second_kernel"), "a kernel"),
        "first_stream": "one stream",
        "second_stream": "another stream",
        "stream_edge": "",
        "point": "the instruction",
        "counted": "all threads that it counts",
        "came": "some lanes",
        "others": "others do not",
        "used": "is used",
        "other_writers": "",
    }
    base = {**unknown, "bytes": _bytes_phrase(finding), **words, **given}
    base |= flag_words(base["flag_write_at"], base["flag_read_at"])
    wait = WAITS.get(operation, WAITS["cp.async"])
    spelled = frameworks.words_of(framework, operation)
    if facts.get("several"):
        base["other_writers"] = _OTHER_WRITERS.format_map({**spelled, **base})
    if operation in SIGNALLED:
        base["group"] = "phase {phase} of {barrier}".format_map(base)
    return {
        "wait": wait.format_map(base),
        "wait_name": wait.split()[0],
        **update_words(facts, spelled["atomic_add"], base["second_at"]),
        "signalled_wait": f"{WAITS['bulk load']} ({frameworks.words_of(framework, 'bulk load')['wait_cpp']})".format_map(base),
        "wait_zero": f"{wait} ({spelled['wait_cpp']})".format_map({**base, "leave": "0"}),
        **{name: word.format_map(base) for name, word in spelled.items()},
        "commit": COMMITS.get(operation, COMMITS["cp.async"]),
        **base,
    }


_INIT_IN_CLUSTER: Final = " (for other CTAs of a cluster: fence.mbarrier_init.release.cluster and a cluster barrier)"
_OTHER_WRITERS: Final = (
    "; other threads come to {first_at}, too: put {cta_barrier} behind it, before the thread that writes the flag does so"
)
_ACCESS_WORDS: Final = (
    "first_at", "second_at", "both_at", "narrow_at", "weak_at", "strong_at", "weak_role", "strong_role", "first_role", "second_role",
    "second_role_verb", "operation", "group",
)  # fmt: skip


def _access_words(finding: Finding) -> dict[str, str]:
    first, last = _first(finding), _last(finding)
    action = _operation(finding)
    alone = "it" if action is None else f"the {action.kind} at {place(first)}"
    group = alone if action is None or action.group is None else f"group {action.group}"
    weak, strong = _by_strength(finding)
    return dict(
        zip(
            _ACCESS_WORDS,
            (
                *(*_places(first, last), _both(first, last), _both(*_narrow(finding)), place(weak), place(strong), weak.role, strong.role),
                *(first.role, last.role, _VERBS.get(last.role, "touch"), action.kind if action else "copy", group),
            ),
            strict=True,
        )
    )


def _places(first: Access, last: Access) -> tuple[str, str]:
    """Both places; of one line with their columns, if these differ."""
    one, other = place(first), place(last)
    if one != other or first.inlined or last.inlined or not 0 < first.column != last.column > 0:
        return one, other
    return f"{one}:{first.column}", f"{other}:{last.column}"


def callers(finding: Finding) -> dict[str, str]:
    """Where to change the kernel for two accesses: not inside a helper that others call, too, but at the two calls in it."""
    if not any(access.inlined for access in finding.pair):
        return {}
    places = caller_places(_first(finding), _last(finding))
    return dict(zip(("first_at", "second_at"), places, strict=True))


def caller_places(*accesses: Access) -> list[str]:
    """The outermost place of each access at which the chains of calls differ; its own place, if they do not differ."""
    chains = [[*map(_short, access.inlined[::-1]), place(access)] for access in accesses]
    level_of_difference = next((level for level, places in enumerate(zip(*chains, strict=False)) if len(set(places)) > 1), -1)
    return [chain[level_of_difference] for chain in chains]


def _both(*accesses: Access) -> str:
    """The places, each once."""
    return " and ".join(dict.fromkeys(map(place, accesses)))


def _bytes_phrase(finding: Finding) -> str:
    """`4 bytes at offset 128 of tile`: what the first access touched, not the union over all."""
    if not finding.accesses:
        return "bytes of memory"
    access = _first(finding)
    name = (finding.buffer and finding.buffer.name) or f"{access.space} memory"
    if access.bytes is None:
        return f"bytes of {name}"
    begin, end = access.bytes
    if access.name:
        joint = ", " if access.name[0].isdigit() else " " if access.name.startswith(DIRECTLY) else " at "  # `4 bytes, 8 bytes past ...`
        return access.name if access.name.startswith("byte") else f"{_count_bytes(end - begin)}{joint}{access.name}"
    where = f"offset {begin} of {name}" if access.in_shared else f"{access.space} address {begin:#x}"
    return f"{_count_bytes(end - begin)} at {where}"


def _limit(shared_bytes: int | None) -> str:
    """A phrase for the end of the CTA's shared memory."""
    if shared_bytes is None:
        return "that is outside the CTA's shared memory"
    return f"the CTA's shared memory is bytes 0..{shared_bytes - 1:,}" if shared_bytes else "the CTA has no shared memory"


def _below(finding: Finding) -> bool:
    """Whether an access lies before the first byte: more memory does not help."""
    return any(access.bytes is not None and access.bytes[0] < 0 for access in finding.accesses)


def _count_bytes(number: int) -> str:
    return f"{number:,} byte{'s' * (number != 1)}"
