"""Exact happens-before for pairs of CTAs with tensor memory and cluster launch control, and random such programs (see oracle_tensor.py).

A cluster of two CTAs with two warps each. Products and copies have `.cta_group::2`, so they touch the cells of both CTAs, and any warp
issues them. A commit names one CTA or both; a wait is for the barrier of the own CTA. A request goes to the own CTA or, behind a cluster
barrier, to both: then it is two steps, one for each CTA that gets the response; the first is in the log.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from oracle_tensor import (
    ALONE,
    AREAS,
    BYTES,
    COLUMNS,
    EVENTS,
    LANES,
    SIGNALS,
    TILE,
    WINDOW,
    WORD,
    Made,
    Order,
    conflicts,
    filled,
    made,
    words_of,
)

from consan.checker.compiled.replay import History
from consan.instrument import effects
from consan.instrument.effects import WordValue
from consan.instrument.record.text.templates import Template

WARPS, CTAS = 4, 2  # of both CTAs: warps 0 and 1 are of the even one
RESPONSES = WARPS  # the barrier of responses; the others are named after the warp that commits to them
F16_256_64 = 0x10100010
Object = tuple[int, int]  # a CTA, and its barrier


def cta_of(warp: int) -> int:
    """The CTA of a warp."""
    return warp // (WARPS // CTAS)


@dataclass(frozen=True)
class PairStep:
    """What a warp does. `phases`: of the barriers that it signals, waits for or expects bytes of, by CTA. `unlogged`: see above."""

    warp: int
    what: str
    site: int
    area: int = 0  # of a wait: the parity; of a request: the CTA that gets the response
    bar: int = 0
    phases: tuple[tuple[int, int], ...] = ()
    everyone: bool = False
    unlogged: bool = False


@dataclass
class RandomPair:
    """Makes a program: each step is one that can run now. `careful`: how likely waits and barriers are."""

    rng: random.Random
    careful: float
    steps: list[PairStep] = field(default_factory=list)
    signalled: dict[Object, int] = field(default_factory=dict)
    known: list[dict[Object, int]] = field(default_factory=lambda: [{} for _ in range(WARPS)])
    told: dict[tuple[Object, int], dict[Object, int]] = field(default_factory=dict)
    asked: dict[int, int] = field(default_factory=dict)  # by CTA: the warp whose request it got last

    def add(self, warp: int, what: str, *, site: int = 0, **more: object) -> None:
        self.steps.append(PairStep(warp, what, site or len(self.steps) + 1, **more))  # type: ignore[arg-type]

    def barrier(self, what: str, warps: range) -> None:
        for warp in warps:
            self.add(warp, what)
        together: dict[Object, int] = {}
        for warp in warps:
            _raise(together, self.known[warp])
        for warp in warps:
            self.known[warp] = dict(together)

    def signal(self, warp: int, at: Object) -> int:
        number = self.signalled.get(at, 0)
        self.signalled[at] = number + 1
        self.told[at, number] = dict(self.known[warp])
        return number

    def wait(self, warp: int, bar: int) -> None:
        known, at = self.known[warp], (cta_of(warp), bar)
        phase = known.get(at, 0)
        stale = phase > 0 and self.rng.random() < 0.1
        if not stale and self.signalled.get(at, 0) <= phase:
            return
        self.add(warp, "wait", bar=bar, area=(phase - stale) & 1, phases=() if stale else ((at[0], phase),))
        if not stale:
            _raise(known, self.told[at, phase])
            known[at] = max(known.get(at, 0), phase + 1)

    def product(self, warp: int) -> None:
        self.add(warp, self.rng.choice(("mma", "mma", "cp")), area=self.rng.randrange(AREAS))
        if self.rng.random() < self.careful:
            mask = self.rng.choice((1, 2, 3, 3))
            ctas = [cta for cta in range(CTAS) if mask >> cta & 1]
            self.add(warp, "commit", bar=warp, phases=tuple((cta, self.signal(warp, (cta, warp))) for cta in ctas))
            if self.rng.random() < self.careful:
                for each in range(WARPS):
                    self.wait(each, warp)

    def move(self, warp: int) -> None:
        kind = self.rng.choice(("ld", "st"))
        self.add(warp, kind, area=self.rng.randrange(AREAS))
        if self.rng.random() < self.careful:
            self.add(warp, f"wait_{kind}")

    def free(self, warp: int, cta: int) -> bool:
        """Whether no schedule exchanges the phases of two requests to a CTA: its own warp makes both, or knows the phase of the first."""
        own, at = 2 * cta, (cta, RESPONSES)
        return self.asked.get(cta, own) == own == warp or self.known[own].get(at, 0) == self.signalled.get(at, 0)

    def request(self, cta: int, everyone: bool) -> None:
        receivers = range(CTAS) if everyone else (cta,)
        if not all(self.free(2 * cta, each) for each in receivers):
            return
        self.asked |= dict.fromkeys(receivers, 2 * cta)
        phases = {each: self.signal(2 * each, (each, RESPONSES)) for each in receivers}
        for each in receivers:
            self.add(2 * each, "expect", bar=RESPONSES, phases=((each, phases[each]),))
        if everyone:
            self.barrier("cluster", range(WARPS))
        site = len(self.steps) + 1
        for each in receivers:
            more = {"phases": ((each, phases[each]),), "everyone": everyone, "unlogged": each != receivers[0]}
            self.add(2 * cta, "request", site=site, bar=RESPONSES, area=each, **more)
        for warp in range(WARPS):
            if self.rng.random() < self.careful:
                self.wait(warp, RESPONSES)
            if self.rng.random() < 0.5:
                self.add(warp, "read")

    def made(self, length: int) -> list[PairStep]:
        self.add(0, "setup")
        self.add(2, "setup")
        self.barrier("cluster", range(WARPS))
        for warp in (0, 2):
            self.add(warp, "alloc")
        self.barrier("cluster", range(WARPS))
        for warp in range(WARPS):
            for area in range(AREAS):
                self.add(warp, "st", area=area)
            self.add(warp, "wait_st")
        self.barrier("cluster", range(WARPS))
        for _ in range(length):
            self._one()
        return self.steps

    def _one(self) -> None:
        warp, choice = self.rng.randrange(WARPS), self.rng.random()
        if choice < 0.35:
            self.product(0 if self.rng.random() < 0.7 else warp)
        elif choice < 0.65:
            self.move(warp)
        elif choice < 0.75:
            self.request(cta_of(warp), everyone=self.rng.random() < 0.5)
        elif choice < 0.75 + 0.12 * self.careful:
            self.barrier("cluster", range(WARPS))
        elif choice < 0.75 + 0.25 * self.careful:
            first = 2 * cta_of(warp)
            self.barrier("barrier", range(first, first + 2))


def _raise(to: dict[Object, int], more: dict[Object, int]) -> None:
    for at, number in more.items():
        to[at] = max(to.get(at, 0), number)


def program(seed: int) -> list[PairStep]:
    """The random program of a seed."""
    rng = random.Random(seed)
    return RandomPair(rng, rng.choice((0.5, 0.8, 0.95))).made(rng.randrange(4, 12))


# -- the order ----------------------------------------------------------------------------------------------------------


class PairOrder(Order):
    """The order of a pair: barriers of a CTA or of both, and phases by CTA."""

    def _meeting(self, step: PairStep) -> tuple[str, int] | None:
        if step.what not in ("barrier", "cluster"):
            return None
        return step.what, cta_of(step.warp) if step.what == "barrier" else -1

    def _phases(self) -> None:
        """A phase of a barrier comes after what signals it, and after the phases before it."""
        for n, step in enumerate(self.steps):
            for cta, phase in step.phases if step.what == "wait" else ():
                for k, other in enumerate(self.steps):
                    signals = other.what in SIGNALS and other.bar == step.bar
                    if signals and any(at == cta and number <= phase for at, number in other.phases):
                        self.later[2 * k + (other.what != "expect")].add(2 * n)


def places(step: PairStep) -> Iterator[tuple[object, bool]]:
    """What a step touches, and whether it writes."""
    if step.what in ("mma", "cp"):
        yield from ((("cells", warp, step.area), True) for warp in range(WARPS))
    elif step.what in ("ld", "st"):
        yield ("cells", step.warp, step.area), step.what == "st"
    elif step.what == "request":
        yield ("slot", step.area), True
    elif step.what == "read":
        yield ("slot", cta_of(step.warp)), False


def races(steps: list[PairStep]) -> set[frozenset[int]]:
    """The sites of each pair of conflicting accesses that are not in order."""
    return conflicts(PairOrder(steps), places)


def unfinished(steps: list[PairStep]) -> set[int]:
    """The sites of operations that no warp knows to be complete; for a response, no warp of the CTA that gets it."""
    order, found = PairOrder(steps), set[int]()
    for n, step in enumerate(steps):
        if step.what in ("mma", "cp", "request"):
            told = {steps[each // 2].warp for each in order.reached[2 * n + 1] if each % 2 == 0}
            if not any(step.what != "request" or cta_of(warp) == step.area for warp in told):
                found.add(step.site)
    return found


# -- the log ------------------------------------------------------------------------------------------------------------

_OF_THE_PAIR = {
    "mma": (effects.TensorMma, EVENTS["mma"][1] | {"pair": True}),
    "cp": (effects.TensorCp, EVENTS["cp"][1] | {"pair": True}),
    "commit": (effects.TensorCommit, {"at": WordValue(0, 1), "ctas": WordValue(0, 2), "multicast": True}),
}
_EVENTS = EVENTS | _OF_THE_PAIR


def _place(bar: int) -> int:
    return WINDOW + (8 * bar if bar < RESPONSES else 8 * RESPONSES)


def _words(step: PairStep) -> tuple[int, ...]:
    words = words_of(step, _place(step.bar), F16_256_64)
    return (*words, sum(1 << cta for cta, _ in step.phases)) if step.what == "commit" else words


def log_of(steps: list[PairStep]) -> tuple[list[Template], History]:
    """The templates and the log of a program; the number of a template, and of its site, is that of the step."""
    templates = [_template(number, steps[number - 1]) for number in range(1, len(steps) + 1)]
    before, at_alloc = _setup(len(templates)), _allocation(len(templates) + 100)
    templates += [Template(number, 1, []) for number in range(len(templates) + 1, len(templates) + 101 + len(at_alloc))]
    for template, _ in (*before, *at_alloc):
        templates[template.number - 1] = template
    lanes: list[list[int]] = [[] for _ in range(WARPS * LANES)]
    for number, step in enumerate(steps, 1):
        for lane in range(LANES):
            lanes[step.warp * LANES + lane] += _logged(number, step, lane, before, at_alloc)
    return templates, History(filled(lanes), WARPS // CTAS * LANES, WINDOW, BYTES, CTAS)


def _logged(number: int, step: PairStep, lane: int, before: Made, at_alloc: Made) -> list[int]:
    if step.unlogged or (step.what in ALONE and lane):
        return []
    if step.what in ("setup", "alloc"):
        return [word for template, words in (before if step.what == "setup" else at_alloc) for word in (template.number, *words)]
    return [number, *_words(step)]


def _template(number: int, step: PairStep) -> Template:
    if step.what in ("setup", "alloc"):
        return Template(number, 1, [])
    if step.what == "cluster":
        events = [each(site=step.site) for each in (effects.ClusterBarrierArrive, effects.ClusterBarrierWait)]
        return Template(number, 1, events)
    kind, fields = _EVENTS[step.what]
    if step.everyone:
        fields = fields | {"multicast": True}
    return Template(number, 1 + len(_words(step)), [kind(site=step.site, **fields)])


def _setup(last: int) -> Made:
    """A warp of each CTA initialises the mbarriers and operands."""
    events = (
        *((effects.MbarrierInit, {"at": WordValue(0, 1), "count": WordValue(1)}, (_place(bar),)) for bar in range(RESPONSES + 1)),
        (effects.InitsFence, {}, ()),
        (effects.Fill, {"at": WordValue(0, 1), "size": WordValue(0, 2)}, (TILE, 128 * 32)),
        (effects.ProxyFence, {"memories": 1}, ()),
    )
    return made(events, last)


def _allocation(last: int) -> Made:
    return made(
        (
            (effects.TensorAllocRequest, {"columns": WordValue(0, 1)}, (AREAS * COLUMNS,)),
            (
                effects.TensorAlloc,
                {"at": WordValue(0, 1), "columns": WordValue(0, 2), "cells": WordValue(0, 3)},
                (WORD, AREAS * COLUMNS, 0),
            ),
        ),
        last,
    )
