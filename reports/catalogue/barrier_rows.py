"""Rows of the catalogue on misused barriers of CTAs, warps and clusters (R-BAR1 to R-BAR4)."""

from __future__ import annotations

from typing import Final

from consan.reports.catalogue.situations import Situation

BARRIER_MISUSE: Final = {
    "other-call": Situation(
        "one {cta_barrier} for all warps of the CTA: where warps meet at different ones CUDA C++ leaves the result undefined",
        "put one {cta_barrier} behind the branch that parts {both_at}, for all warps; where groups of warps synchronise by themselves, give"
        " them named barriers with their thread counts",
        "warps of a CTA meet at different calls of {cta_barrier}, at {both_at}: the hardware counts them as one barrier, and CUDA C++ does"
        " not define that",
        "warning",
    ),
    "out-of-step": Situation(
        "as many calls of {cta_barrier} in every warp: warps that call it more often fall behind",
        "let all warps of the CTA pass each {cta_barrier} equally often: move the one that only some warps call out of its branch",
        "warps of a CTA meet at different calls of {cta_barrier}, at {both_at}, and from then on in different iterations of one loop",
    ),
    "shared-id": Situation(
        "an order between the last use of {barrier} and the next arrival at it: (1) and (2) can be taken for parts of one round",
        "if all these threads are to meet in one round, let the thread count of {barrier} name all of them; else let no thread of"
        " {both_at} arrive again before all others have left the round before: at another named barrier, which both sides pass after the"
        " last use of {barrier}; or give groups of warps that have nothing to do with each other barriers of their own",
        "{barrier} is used at {first_at} and at {second_at} at the same time: which warps release each other depends on timing",
    ),
    "counts-disagree": Situation(
        "one thread count for all that meet at {barrier}",
        "give the same count at {both_at}: all threads that arrive or wait, a multiple of 32; or, where these are groups of warps that have"
        " nothing to do with each other, give each group a barrier of its own",
        "{barrier} is used with different thread counts at {both_at}",
    ),
    "divergent": Situation(
        "the other lanes of the warp at {point}: an aligned barrier waits for all that have not exited",
        "move the barrier at {first_at} out of its branch or loop, so that {counted} pass it",
        "{came} reach {point} at {first_at}; {others}",
    ),
    "lane-gone": Situation(
        "a lane that is there at {first_at}: the value of a lane that has exited, is not in the mask, or does not exist, is undefined",
        "let all 32 lanes of the warp come to {first_at}, those without an element with a neutral value (guard the load, not the"
        " thread, and launch a multiple of 32 threads); or use the value only where its lane is there",
        "a lane takes at {first_at} the value of {others}; it is undefined, and what follows from it {used} at {second_at}",
    ),
    "divergent-mask": Situation(
        "the other lanes that the mask of {point} names",
        "name in the mask at {first_at} only lanes that execute it, or move it out of the branch",
        "{came} reach {point} at {first_at}, whose mask names more lanes; {others}",
    ),
    "barrier-number": Situation(
        "one of the 16 barriers of a CTA: 0 to 15",
        "give the barrier at {first_at} a number from 0 to 15",
        "the {first_role} at {first_at} names {barrier}, which no CTA has",
    ),
    "thread-count": Situation(
        "a thread count that is a multiple of 32, and not zero: whole warps arrive",
        "round the thread count at {first_at} up to a multiple of 32, and let every warp that it counts arrive",
        "the {first_role} at {first_at} gives {barrier} a thread count that is no multiple of 32",
    ),
    "not-in-mask": Situation(
        "the executing lane in the mask of the {first_role}: without it the behaviour is undefined",
        "name all lanes that execute {first_at} in its mask, or let only lanes of the mask come there",
        "a lane executes the {first_role} at {first_at}, whose mask lacks it",
    ),
    "arrived-twice": Situation(
        "a barrier.cluster.wait between two arrivals of one thread: each thread may arrive only once in a phase",
        "put barrier.cluster.wait between the two arrivals of each thread, or remove the arrival at {first_at}",
        "a thread arrives at {first_at} at the barrier of the cluster, at which it has arrived in this phase",
    ),
    "not-arrived": Situation(
        "a barrier.cluster.arrive by the same thread before the wait: the phase needs it, so the wait would never return",
        "let each thread execute barrier.cluster.arrive before {first_at}",
        "a thread waits at {first_at} at the barrier of the cluster, at which it has not arrived since its last wait; this device has let"
        " it pass, and what comes behind is undefined",
    ),
    "divergent-warp": Situation(
        "the other lanes of the warp at {point}: the .aligned form needs all of them",
        "move the instruction at {first_at} out of the branch, or make the branch uniform for the warp",
        "{came} reach {point} at {first_at}; {others}",
    ),
}
