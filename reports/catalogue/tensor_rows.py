"""The catalogue's rows for tcgen05 (instrument/SEMANTICS.md, section 4.4): waits, races, reads and misuses of tensor memory."""

from __future__ import annotations

from typing import Final

from consan.reports.catalogue.situations import FREED_EARLY, GENERAL, TENSOR_OPERATIONS, CatalogueEntry, Situation

_STILL_READS = "the {second_role} at {second_at} can overwrite an operand that the {operation} at {first_at} still reads"
_STILL_WORKS = "the {second_role} at {second_at} uses {bytes} while the {operation} at {first_at} may still be at work there"
_NOT_READ = "the {second_role} at {second_at} can change {bytes} before the {first_role} at {first_at} has read them"
_WAIT_FIX = (
    "wait with {wait} ({wait_cpp}) before {second_at}, in the thread that executes it or in one that it is ordered behind ({cta_barrier}"
    " after the wait)"
)
_PEER_FIX = (
    "let {commit} ({commit_cpp}) behind {first_at} name the CTA of {second_at}, too (.multicast::cluster), and wait in that CTA, at its own"
    " mbarrier, before {second_at}; or put {cluster_barrier} after the wait in the other CTA: a thread can wait at the mbarriers of its own"
    " CTA only"
)
_COMMIT_FIX = (
    "execute {commit} ({commit_cpp}) after {first_at}, in the thread that issues the {operation} (the same election), on an mbarrier for"
    " which {second_at} waits"
)


def _by_commit(prefix: str, operation: str, message: str) -> dict[str, Situation]:
    """The situations in which the completion of an operation is not known: for operand bytes, and for cells."""
    return {
        f"{prefix}not-waited:{operation}": Situation("a successful wait for {group} before this {second_role}", _WAIT_FIX, message),
        f"{prefix}waited-no-barrier:{operation}": Situation(
            "an edge from the wait for {group} to (2): only another thread has waited",
            _WAIT_FIX,
            message + ": another thread has waited for it, and nothing orders that wait before (2)",
        ),
        f"{prefix}peer-not-waited:{operation}": Situation(
            "a wait for the {operation} that the CTA of (2) can make: {group} is at the mbarrier of another CTA", _PEER_FIX, message
        ),
        f"{prefix}not-committed:{operation}": Situation(
            "{commit} behind the {operation}, and a wait for its mbarrier: an earlier commit does not cover it",
            _COMMIT_FIX,
            message + ": its thread has not committed it",
        ),
        f"{prefix}other-issuer:{operation}": Situation(
            "{commit} by the thread that issued the {operation}: a commit covers the operations of its own thread only",
            _COMMIT_FIX,
            message + ": the commit is by a thread that did not issue it",
        ),
    }


def _by_wait(operation: str, message: str) -> dict[str, Situation]:
    fix = "put {wait} ({wait_cpp}) after {first_at}, in its warp, before the barrier or the arrival that hands the columns over"
    return {
        f"tensor-not-waited:{operation}": Situation("{wait} between (1) and (2)", fix, message),
        f"tensor-waited-no-barrier:{operation}": Situation(
            "an edge from the {wait_name} of the warp of (1) to (2)",
            "put {cta_barrier}, or an arrival on an mbarrier for which (2) waits, between the {wait_name} and {second_at}",
            message + ": its warp has waited, and nothing orders that wait before (2)",
        ),
        f"tensor-other-lanes:{operation}": Situation(
            "{warp_barrier_ptx} after the {wait_name}", "put {warp_barrier} between the {wait_name} and {second_at}", message
        ),
    }


TENSOR_WAITS: Final = {
    **{name: row for each in TENSOR_OPERATIONS for name, row in _by_commit("", each, _STILL_READS).items()},
    **{name: row for each in TENSOR_OPERATIONS for name, row in _by_commit("tensor-", each, _STILL_WORKS).items()},
    **{
        f"tensor-other-lanes:{each}": Situation(
            "{warp_barrier_ptx} after the wait: it tells the lanes that executed it",
            "put {warp_barrier} between the wait and {second_at}, or let all lanes wait",
            _STILL_WORKS + ": other lanes of the warp have waited for it",
        )
        for each in TENSOR_OPERATIONS
    },
    "tensor-earlier-commit": Situation(
        "a wait for a commit behind (1): what (2) has waited for was committed before it; or, if (2) comes first, an edge from (2) to the"
        " thread that issues (1)",
        "if {second_at} uses what {first_at} computes, execute {commit} ({commit_cpp}) behind {first_at} and wait for its phase before"
        " {second_at}; if {second_at} comes first, let its threads arrive ({arrive}) behind it, and let the thread of {first_at} wait for"
        " that phase ({acquire}) first",
        _STILL_WORKS + ": the wait before (2) tells of earlier operations only",
    ),
    "tensor-only-used": Situation(
        "{wait} between (1) and (2): only the use of its registers tells that (1) is complete (policy isa, T2: CuTe leaves it out)",
        "put {wait} ({wait_cpp}) after {first_at}, in its warp, before the barrier or the arrival that hands the columns over",
        "the {second_role} at {second_at} changes {bytes} after the registers of the {first_role} at {first_at} have been used, and no"
        " wait::ld lies between",
        "warning",
        "isa",
    ),
    "tensor-issue-order": Situation(
        "a commit of (1) and a wait for it: the ISA does not list the two as a pipeline (policy isa, T3: every block-scaled kernel"
        " relies on the order of issue)",
        _COMMIT_FIX,
        "the {second_role} at {second_at} uses {bytes} behind the {first_role} at {first_at} in the order of their issue only",
        "warning",
        "isa",
    ),
    **_by_wait("tcgen05.ld", _NOT_READ),
    **_by_wait("tcgen05.st", "the {second_role} at {second_at} uses {bytes} before the {first_role} at {first_at} has written them"),
}
TENSOR_RACES: Final = {
    "tensor-peer-dealloc": Situation(
        "{cluster_barrier_ptx} between (1) and (2): both CTAs of the pair must be done before either frees (policy isa, T6:"
        " each CTA frees its own columns only)",
        "put {cluster_barrier_ptx} in both CTAs behind the last use of the columns, before {second_at}",
        "the tcgen05.dealloc at {second_at} frees columns of the pair before the {first_role} at {first_at} of the other CTA is known"
        " to be over",
        "warning",
        "isa",
    ),
    FREED_EARLY: Situation(
        "a barrier between (1) and the thread of (2)",
        "put {cta_barrier}, which all warps that use the columns pass, after their last use ({first_at}) and before {second_at}",
        "the {second_role} at {second_at} can free {bytes} before the {first_role} at {first_at} is over",
    ),
    "tensor-no-barrier/WAR": Situation(
        'an edge from (1) to the thread that issues (2): the "empty" mbarrier of these columns, or a barrier',
        "let every warp arrive ({arrive}) after its tcgen05.wait::ld behind {first_at}, and let the thread of {second_at} wait for that"
        " phase ({acquire}) first",
        _NOT_READ + ": nothing has shown its thread that they are free",
    ),
    **{
        f"tensor-no-barrier:{each}/WAR": Situation(
            "an edge from (1) to the threads of (2): a commit behind (1), and a wait for it",
            "execute {commit} ({commit_cpp}) behind {first_at}, on an mbarrier for which the threads of {second_at} wait before it in each"
            " round (parity 1, which passes in the first one, then 0, and so on)",
            _NOT_READ + ": nothing has shown its thread that they are free",
        )
        for each in TENSOR_OPERATIONS
    },
    "tensor-no-barrier": Situation(
        "an order between (1) and (2): a barrier, or an mbarrier on which one arrives and for which the other waits",
        "put {cta_barrier} between {first_at} and {second_at}; or, where warps have roles, let the threads of {first_at} arrive ({arrive})"
        " behind it, and let the thread of {second_at} wait for that phase ({acquire}) first",
        "nothing orders the {first_role} at {first_at} and the {second_role} at {second_at}, which touch {bytes}",
    ),
}
TENSOR_PROXY_FENCES: Final = {
    "no-fence-behind-commit": Situation(
        "a proxy fence between the wait for the commit of (1) and (2) (policy isa, T13: the ISA states no implicit fence for tcgen05, and"
        " shipped kernels leave it out)",
        "execute fence.proxy.async.shared::cta ({proxy_fence}) after the wait for the commit, before {second_at}",
        "the {second_role} at {second_at} (generic proxy) stores to an operand of the {operation} at {first_at} (async proxy): it is"
        " complete, but no proxy fence lies between",
        "warning",
        "isa",
    ),
    "fence-of-own-cta": Situation(
        "a proxy fence for the shared memory of the cluster between (1) and (2): the peer issues (2) (policy isa, T14)",
        "write fence.proxy.async.shared::cluster, or fence.proxy.async, in the threads of {first_at}",
        "the {first_role} at {first_at} is fenced with .shared::cta, and the {second_role} at {second_at} that reads it is issued by the"
        " other CTA of the pair",
        "warning",
        "isa",
    ),
}
TENSOR_READS: Final = {
    "tensor:tcgen05.mma": Situation(
        "a write of these cells before (1) since their allocation, or enable-input-d = false in the first product",
        "pass enable-input-d = false (use_acc=False; UMMA::ScaleOut::Zero) for the first k step; or write the columns first (tcgen05.st,"
        " tcgen05.cp) if they are A, scale factors or metadata",
        "the {first_role} at {first_at} reads {bytes}, which nothing has written",
    ),
    "tensor": Situation(
        "a write of these cells before (1) since their allocation",
        "write the columns first (tcgen05.mma, tcgen05.st, tcgen05.cp), or check the address at {first_at}",
        "the {first_role} at {first_at} reads {bytes}, which nothing has written",
    ),
}
TENSOR_AT_EXIT: Final = {
    **{
        f"exit:{each}": Situation(
            "a wait for the commit of (1) by any thread of the CTA",
            "execute {commit} ({commit_cpp}) behind {first_at} in its thread, and wait for its mbarrier before the kernel returns",
            "the {operation} at {first_at} can still be at work when its CTA exits: no thread knows that it is complete",
        )
        for each in TENSOR_OPERATIONS
    },
    "pair-not-started": Situation(
        "a cluster barrier before (1): the other CTA of the pair must be known to run",
        "put {cluster_barrier_ptx} at the start of the kernel, before {first_at}",
        "the {first_role} at {first_at} needs the other CTA of the pair, which may not have started",
    ),
}

TCGEN05_FENCE: Final = CatalogueEntry(
    "missing-tcgen05-fence",
    "missing tcgen05 fence",
    "error",
    "the {second_role} at {second_at} and the {first_role} at {first_at} use {bytes}; only relaxed operations order them",
    {
        "tensor-no-fence-after": Situation(
            "tcgen05.fence::after_thread_sync between the relaxed wait and (2)",
            "execute tcgen05.fence::after_thread_sync ({after_sync}) after the wait, before {second_at}; or make the wait an acquire",
        ),
        "tensor-no-fence-before": Situation(
            "tcgen05.fence::before_thread_sync between (1) and the relaxed arrival or barrier",
            "execute tcgen05.fence::before_thread_sync ({before_sync}) after {first_at} and its wait, before the arrival; or make the"
            " arrival a release",
        ),
        "tensor-fence-by-the-isa": Situation(
            "tcgen05.fence before the arrival and behind the wait (policy isa, T1: compilers leave both out, and release and acquire"
            " order tcgen05 operations too)",
            "execute tcgen05.fence::before_thread_sync ({before_sync}) before the arrival or barrier, and tcgen05.fence::after_thread_sync"
            " ({after_sync}) after it, before {second_at}",
            "the {second_role} at {second_at} and the {first_role} at {first_at} use {bytes}; release and acquire order them, and no"
            " tcgen05.fence lies between",
            "warning",
            "isa",
        ),
        GENERAL: Situation("tcgen05.fence on both sides", "put tcgen05.fence before the arrival and after the wait"),
    },
    caption="Relaxed operations order (1) before (2), and tensor memory needs tcgen05.fence beside them.",
)

TCGEN05_MISUSE: Final = CatalogueEntry(
    "tcgen05-misuse",
    "misuse of tensor memory",
    "error",
    "tensor memory is used against its protocol at {first_at}",
    {
        "alloc-columns": Situation(
            "a power of two from 32 to 512",
            "allocate the next power of two at {first_at}",
            "the tcgen05.alloc at {first_at} asks for {number} columns",
        ),
        "alloc-grows": Situation(
            "allocations in descending order: the number of columns must not grow from one to the next",
            "allocate the larger part first, or both at once",
            "the tcgen05.alloc at {second_at} asks for {number} columns, more than the allocation before it at {first_at}",
        ),
        "alloc-relinquished": Situation(
            "the permit to allocate: a thread of the CTA has given it up",
            "move tcgen05.relinquish_alloc_permit at {first_at} behind the last allocation",
            "the tcgen05.alloc at {second_at} comes after tcgen05.relinquish_alloc_permit at {first_at}",
        ),
        "dealloc-mismatch": Situation(
            "the base and the number of columns of one live allocation, once",
            "pass the address that tcgen05.alloc stored and the same number of columns, on one path only",
            "the tcgen05.dealloc at {second_at} frees {bytes}: that is no live allocation",
        ),
        "alloc-live": Situation(
            "tcgen05.dealloc on every path to the end of the kernel",
            "free the {number} columns with tcgen05.dealloc before the kernel returns, also where it returns early",
            "the {number} columns that tcgen05.alloc at {first_at} got are still allocated when the CTA has ended",
        ),
        "outside-allocation": Situation(
            "an allocation that has all of these columns",
            "check the address at {first_at}, and the number of columns that are allocated",
            "the {first_role} at {first_at} touches {bytes}, outside all allocations of the CTA",
        ),
        "used-after-dealloc": Situation(
            "the tcgen05.dealloc behind the last use",
            "move the tcgen05.dealloc at {first_at} after {second_at}",
            "the {second_role} at {second_at} touches {bytes}, which tcgen05.dealloc at {first_at} has freed",
        ),
        "other-quarter": Situation(
            "lanes of the warp's own quarter: warp w reaches lanes 32 (w modulo 4) and the 31 after them",
            "add (warp modulo 4) x 32 to the lane of the address at {first_at} (bits 31..16)",
            "the {first_role} at {first_at} names lane {number}, which belongs to another warp",
        ),
        "not-uniform": Situation(
            "the same address and the same number of columns in all lanes of the warp",
            "take the operands at {first_at} from one lane (shfl.sync), or from the word that tcgen05.alloc stored",
            "lanes of a warp give the instruction at {first_at} different operands",
        ),
        "two-groups": Situation(
            "one value of .cta_group in all tcgen05 instructions of the kernel",
            "write .cta_group::1 or .cta_group::2 everywhere",
            "the {second_role} at {second_at} has .cta_group::{number}, and the {first_role} at {first_at} has not",
        ),
        "mask-outside": Situation(
            "a mask with CTAs of the cluster only, by their ranks",
            "clear bit {number} of the mask at {first_at}",
            "the {first_role} at {first_at} names rank {number} in its mask, and the cluster has no such CTA",
        ),
        "lane-of-the-warp": Situation(
            "the lane of the warp's own quarter in the address (policy isa, T4: a lane below 32 counts from there, and"
            " shipped kernels rely on it)",
            "add (warp modulo 4) x 32 to the lane of the address at {first_at} (bits 31..16)",
            "the {first_role} at {first_at} names lane {number} in a warp whose quarter begins elsewhere",
            "error",
            "isa",
        ),
        "collector-empty": Situation(
            "a product with .collector::a::fill (.ws: ::bN::fill) before it, and none with ::discard, ::lastuse or without the"
            " qualifier between",
            "fill the collector buffer in the product before {first_at}, or leave the qualifier out",
            "the {first_role} at {first_at} uses a collector buffer that holds nothing",
        ),
        "collector-discarded": Situation(
            "a product with .collector::a::fill (.ws: ::bN::fill) between (1) and (2)",
            "let the product at {first_at} fill the collector buffer (::fill, or ::use behind an earlier fill), or leave the qualifier out"
            " at {second_at}",
            "the {second_role} at {second_at} uses a collector buffer, and the {first_role} at {first_at} has discarded what it held",
        ),
        "collector-other": Situation(
            "the fill of the same matrix: the same descriptor or address, read in the same way",
            "use ::fill at {second_at}, or pass the matrix of {first_at}",
            "the {second_role} at {second_at} uses a collector buffer that the {first_role} at {first_at} has filled with another matrix",
        ),
        "other-layout": Situation(
            "the layout in which the cells were written: M, .ws, .cta_group and the type of D decide it",
            "give the products at {first_at} and {second_at} the same M, type of D and form, or write the cells anew",
            "the {second_role} at {second_at} reads {bytes} in another layout than the {first_role} at {first_at} has written",
            "note",
        ),
        "words-apart": Situation(
            "the same offset in shared memory for the address in both CTAs (T22: ptxas 13 uses that of the odd CTA in both)",
            "take the same variable for [dst] in both CTAs at {first_at}",
            "the two CTAs of a pair have tcgen05.alloc at {first_at} store the address at different offsets",
            "note",
        ),
        "illegal": Situation(
            "values that the tables of the ISA allow",
            "correct the field that is named, in the instruction or in its descriptor (in CuTe: take the MMA atom of the tile's shape)",
            "the {first_role} at {first_at} is illegal",
        ),
        GENERAL: Situation("the protocol of tensor memory", "see `consan explain tcgen05-misuse`"),
    },
    caption="Tensor memory is used against its protocol.",
    shape="misuse",
    by_compiler=True,
)
