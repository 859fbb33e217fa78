"""Rows of the catalogue about mbarriers: what misuses one, and phases that cannot end."""

from __future__ import annotations

from typing import Final

from consan.reports.catalogue.situations import UNPUBLISHED_TO_PEER, Situation

_UNANNOUNCED: Final = Situation(
    "an expect_tx of all bytes that the copies of a phase bring",
    "make expect_tx the bytes that the copies of one phase write: a tensor copy counts its whole box, also what lies outside the"
    " tensor; check that no copy signals the wrong barrier",
    "copies bring more bytes to {barrier} than expect_tx announces, the last of them at {second_at}: a wait can succeed while copies of"
    " its phase are in flight, or never",
)

MBARRIER_MISUSE: Final = {
    "not-initialised": Situation(
        "mbarrier.init of {barrier} before this {second_role}",
        "initialise it in one thread ({init}), then {cta_barrier}, before {second_at}; check its address",
        "the {second_role} at {second_at} uses {barrier}, which nobody has initialised",
    ),
    "invalidated": Situation(
        "mbarrier.init of {barrier} after its mbarrier.inval, or the use before it",
        "move the mbarrier.inval at {first_at} after the last use, with a barrier between; or initialise again before {second_at}",
        "the {second_role} at {second_at} uses {barrier} after its mbarrier.inval at {first_at}",
    ),
    "initialised-twice": Situation(
        "mbarrier.inval between the two, or one thread that initialises",
        "let one thread initialise ({one_thread}); before a new use of its bytes execute mbarrier.inval and {cta_barrier}",
        "{barrier} is initialised at {second_at} while it is still in use since its initialisation at {first_at}",
    ),
    "init-not-published": Situation(
        "a barrier between the initialisation and the first use",
        "put {cta_barrier} after {first_at} and before {second_at}{init_in_cluster}",
        "the {second_role} at {second_at} can come before the initialisation of {barrier} at {first_at}",
    ),
    UNPUBLISHED_TO_PEER: Situation(
        "a cluster barrier between the initialisation and the first use by another CTA",
        "put {cluster_barrier}, with fence.mbarrier_init.release.cluster ahead of it in the thread that initialises, after {first_at} and"
        " before {second_at}",
        "the {second_role} at {second_at} can come before the initialisation of {barrier} at {first_at}",
    ),
    "bytes-used": Situation(
        "mbarrier.inval before its eight bytes are used for anything else",
        "give {second_at} bytes of its own; or execute mbarrier.inval in one thread, then {cta_barrier}, before it",
        "the {second_role} at {second_at} touches the bytes of {barrier}, in use since its initialisation at {first_at}",
    ),
    "too-many-arrivals": Situation(
        "an arrival count that covers every arrival of a phase",
        "initialise the mbarrier at {first_at} with the number of arrivals of one phase; or, if {expected} is right, let fewer threads"
        " arrive at {second_at} (one of a warp: {one_lane})",
        "too many arrivals on {barrier} in one phase, at {second_at}: its count, set at {first_at}, is {expected}",
    ),
    "arrivals-left": Situation(
        "an arrival count that covers every arrival of a phase",
        "initialise the mbarrier at {first_at} with the number of arrivals of one phase; or, if {expected} is right, let fewer threads"
        " arrive at {second_at}",
        "more threads arrive on {barrier} than its count, {expected}, which is set at {first_at}: the arrival at {second_at} belongs to the"
        " next phase, and no wait noticed it in this launch",
        "warning",
    ),
    "phase-lapped": Situation(
        "a successful wait for the phase that is over, before the arrivals that complete the next one",
        "before the arrivals at {second_at} for the next phase, wait for the one before it: mbarrier.try_wait.parity ({mbarrier_wait})"
        " with parity 0, then 1, and so on; in the arriving threads, or in another one, with a barrier between that wait and the arrivals",
        "{barrier} completes a second phase at {second_at}, and nobody has waited for the one before it",
    ),
    "phase-not-waited": Situation(
        "a successful wait for the phase that is over, before any arrival of the next one (ISA 9.7.13.15.4; policy isa, D11)",
        "before the arrival at {second_at}, wait for the phase before it ({mbarrier_wait}), in the arriving thread, or in another one,"
        " with a barrier between that wait and the arrival",
        "a thread arrives at {barrier} at {second_at} for the next phase, and nobody has waited for the one before it",
        "warning",
        "isa",
    ),
    "tx-range": Situation(
        "a tx-count between -(2^20 - 1) and 2^20 - 1",
        "announce no more than 1,048,575 bytes a phase: use several phases or several barriers",
        "the tx-count of {barrier} leaves its range at {second_at}",
    ),
    **dict.fromkeys(("bytes-not-announced", "bytes-too-few"), _UNANNOUNCED),
    "expect-unordered": Situation(
        "an arrival that comes behind this expect_tx and that the phase waits for: else it can end before the bytes are announced",
        "announce the bytes with mbarrier.arrive.expect_tx, and initialise the mbarrier with the number of these arrivals; or let the"
        " thread of {first_at} announce all bytes; or put a barrier between {second_at} and {first_at} ({warp_barrier} for lanes of a"
        " warp, {cta_barrier}, or a cluster barrier)",
        "the expect_tx at {second_at} may come too late: nothing orders it before an arrival on {barrier}, and with that at {first_at} the"
        " phase can end without these bytes",
    ),
    "count-range": Situation(
        "an arrival count between 1 and 2^20 - 1",
        "initialise at {second_at} with the number of arrivals of one phase",
        "the mbarrier is initialised at {second_at} with a count that it cannot hold",
    ),
    "no-complete": Situation(
        "another arrival that completes the phase: the .noComplete form must not",
        "use mbarrier.arrive without .noComplete at {second_at}, or a higher count at {first_at}",
        "an arrival with .noComplete at {second_at} completes the phase of {barrier}",
    ),
    "signals-pending": Situation(
        "a wait for the phase that (1) helps to complete, before mbarrier.inval",
        "wait with mbarrier.try_wait.parity for everything that signals {barrier}, then {cta_barrier}, before {second_at}",
        "{barrier} is invalidated at {second_at} while the {first_role} at {first_at}, which signals it, may still be in flight",
    ),
    "waiters-pending": Situation(
        "a barrier between the waits of the other warps and mbarrier.inval",
        "put {cta_barrier} between the last wait for {barrier} and {second_at}",
        "{barrier} is invalidated at {second_at} while another warp may still be waiting for it",
    ),
}

MBARRIER_DEADLOCKS: Final = {
    "bytes": Situation(
        "{lacking}: expect_tx announced more bytes than copies have brought",
        "make expect_tx the bytes that the copies of one phase write: a tensor copy counts its whole box, also what lies outside the"
        " tensor; check that every copy that was announced is issued, and on this barrier; in a cluster, that the mask of a multicast names"
        " this CTA",
    ),
    "excess": Situation(
        "{lacking}: copies have brought more bytes than expect_tx announced",
        "make expect_tx the bytes that the copies of one phase write: a tensor copy counts its whole box, also what lies outside the"
        " tensor; check that no copy signals the wrong barrier",
    ),
    "unannounced": Situation(
        "{lacking}: copies have brought bytes that this CTA has not announced",
        "execute mbarrier.arrive.expect_tx in each CTA that a copy writes to, on its own barrier: a multicast copy's bytes are counted in"
        " each of them, and what its issuer announces is for the issuer's own barrier only",
    ),
    "arrivals": Situation(
        "{lacking}: fewer threads arrive than mbarrier.init counts",
        "initialise with the number of arrivals that one phase gets, or let all of them arrive (a consumer arrives on the empty mbarrier of"
        " a stage that it has read); check the number of iterations on the two sides of the"
        " pipeline, and the parity that the producer begins with (1 on an empty barrier)",
    ),
    "too-many": Situation(
        "{lacking}: more threads arrive in a phase than mbarrier.init counts",
        "initialise each of these mbarriers with the number of arrivals that one phase gets, or let one thread of each warp arrive:"
        " arrivals beyond the count belong to later phases, so a thread that waits goes on too early or never",
    ),
    "both": Situation(
        "{lacking}",
        "look for the thread that should arrive and issue the copies: does it wait itself, or has it left its loop early?"
        " Check the number of iterations on the two sides of the pipeline, and the parities",
    ),
    "crossed": Situation(
        "a signal that completes {barrier}",
        "let every thread that the barriers count arrive; a wait for a free stage begins with parity 1, which returns at once on an"
        " mbarrier that nobody has arrived on yet",
    ),
    "nothing-missing": Situation(
        "a new use of {barrier}: nothing has arrived in the current phase, the one waited for",
        "check the parity that is waited for, and the number of iterations on the two sides of the pipeline",
    ),
}
