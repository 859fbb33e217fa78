"""Exact happens-before for programs with tensor memory and cluster launch control (SEMANTICS 4.4, 4.5), and random such programs.

Each warp is one thread here: what one lane issues is behind what its warp has done, because all lanes execute every wait and barrier. An
operation has two moments, issue and completion. The order is the closure of a graph of moments, without clocks, counters or a replay: that
is what the checker's rules are judged by. Two conflicting accesses are in order if the completion of one reaches the issue of the other, or
if the ISA's pipelines keep them in the order of their issue.

A program is a list of steps in an order in which it can run, so that no wait is for ever; the checker's log has them by warp.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.checker.compiled.replay import History
from consan.instrument import effects
from consan.instrument.effects import WordValue
from consan.instrument.record.text.templates import END, Template

WARPS, LANES, WINDOW, BYTES = 3, 32, 1024, 20480
BARRIERS = [1024 + 8 * each for each in range(4)]  # the last one is for responses
WORD, SLOT, TILE = 1056, 1072, 2048
F16_128_64 = 0x08100010
COLUMNS, AREAS = 64, 2
PIPELINED = {("mma", "mma"), ("mma", "cp"), ("cp", "mma"), ("cp", "cp")}  # of one thread (T3)
BETWEEN_THREADS = {("mma", "mma"), ("cp", "mma")}
ASYNCHRONOUS = ("mma", "cp", "ld", "st", "request")
SIGNALS = ("commit", "request", "expect")
WAITED = {"wait_ld": ("ld",), "wait_st": ("st",)}


@dataclass(frozen=True)
class Step:
    """What a warp does. `area`: of columns; `bar`, `phase`: of a commit or a wait; `site`: its number in reports."""

    warp: int
    what: str
    site: int
    area: int = 0
    bar: int = 0
    phase: int = -1  # -1 of a wait: nothing, its parity is stale


@dataclass
class Random:
    """Makes a program: each step is one that can run now. `careful`: how likely waits and barriers are."""

    rng: random.Random
    careful: float
    steps: list[Step] = field(default_factory=list)
    commits: list[int] = field(default_factory=lambda: [0] * len(BARRIERS))
    known: list[list[int]] = field(default_factory=lambda: [[0] * len(BARRIERS) for _ in range(WARPS)])
    told: dict[tuple[int, int], list[int]] = field(default_factory=dict)  # what a commit's thread knew

    def add(self, warp: int, what: str, **more: int) -> None:
        self.steps.append(Step(warp, what, len(self.steps) + 1, **more))

    def barrier(self) -> None:
        for warp in range(WARPS):
            self.add(warp, "barrier")
        together = [max(each) for each in zip(*self.known, strict=True)]
        self.known = [list(together) for _ in range(WARPS)]

    def signal(self, warp: int, bar: int) -> None:
        self.told[bar, self.commits[bar]] = list(self.known[warp])
        self.commits[bar] += 1

    def wait(self, warp: int, bar: int) -> None:
        """Wait for the next phase, if it can come; now and then with the parity of the phase before."""
        known = self.known[warp]
        stale = known[bar] > 0 and self.rng.random() < 0.1
        if not stale and self.commits[bar] <= known[bar]:
            return
        self.add(warp, "wait", bar=bar, area=(known[bar] - stale) & 1, phase=-1 if stale else known[bar])
        if not stale:
            told = self.told[bar, known[bar]]
            self.known[warp] = [max(pair) for pair in zip(known, told, strict=True)]
            self.known[warp][bar] = max(self.known[warp][bar], known[bar] + 1)

    def product(self, warp: int) -> None:
        self.add(warp, self.rng.choice(("mma", "mma", "cp")), area=self.rng.randrange(AREAS))
        if self.rng.random() < self.careful:
            bar = warp  # of one warp, so that no schedule exchanges phases
            self.add(warp, "commit", bar=bar, phase=self.commits[bar])
            self.signal(warp, bar)
            if self.rng.random() < self.careful:
                for each in range(WARPS):
                    self.wait(each, bar)

    def move(self, warp: int) -> None:
        kind = self.rng.choice(("ld", "st"))
        self.add(warp, kind, area=self.rng.randrange(AREAS))
        if self.rng.random() < self.careful:
            self.add(warp, f"wait_{kind}")

    def request(self) -> None:
        warp, bar = 0, len(BARRIERS) - 1
        self.add(warp, "expect", bar=bar, phase=self.commits[bar])
        self.add(warp, "request", bar=bar, phase=self.commits[bar])
        self.signal(warp, bar)
        for each in range(WARPS):
            if self.rng.random() < self.careful:
                self.wait(each, bar)
            if self.rng.random() < 0.5:
                self.add(each, "read")

    def made(self, length: int) -> list[Step]:
        self.add(0, "setup")
        self.barrier()
        for warp in range(WARPS):
            for area in range(AREAS):
                self.add(warp, "st", area=area)
            self.add(warp, "wait_st")
        self.barrier()
        for _ in range(length):
            warp = self.rng.randrange(WARPS)
            choice = self.rng.random()
            if choice < 0.35:
                self.product(0 if self.rng.random() < 0.8 else warp)
            elif choice < 0.65:
                self.move(warp)
            elif choice < 0.75:
                self.request()
            elif choice < 0.75 + 0.25 * self.careful:
                self.barrier()
        return self.steps


def program(seed: int) -> list[Step]:
    """The random program of a seed."""
    rng = random.Random(seed)
    return Random(rng, rng.choice((0.5, 0.8, 0.95))).made(rng.randrange(4, 12))


# -- the order ----------------------------------------------------------------------------------------------------------


class Order:
    """Which moment reaches which. Moments: 2 n is the issue of step n, 2 n + 1 its completion. A pair has a PairOrder."""

    def __init__(self, steps: Sequence[Any]) -> None:
        self.steps = steps
        self.later: list[set[int]] = [set() for _ in range(2 * len(steps))]
        self._threads()
        self._barriers()
        self._completions()
        self._phases()
        self.reached = [self._from(moment) for moment in range(2 * len(steps))]

    def _next(self, n: int) -> int | None:
        return next((k for k in range(n + 1, len(self.steps)) if self.steps[k].warp == self.steps[n].warp), None)

    def _threads(self) -> None:
        for n in range(len(self.steps)):
            self.later[2 * n].add(2 * n + 1)
            following = self._next(n)
            if following is not None:
                self.later[2 * n].add(2 * following)

    def _meeting(self, step: Any) -> tuple[str, int] | None:
        """The kind of a barrier, and who takes part; None of other steps."""
        return ("barrier", 0) if step.what == "barrier" else None

    def _barriers(self) -> None:
        """All members of a round come before what follows each of them."""
        rounds: dict[tuple[tuple[str, int], int], list[int]] = {}
        count: Counter[tuple[int, tuple[str, int]]] = Counter()
        for n, step in enumerate(self.steps):
            if meeting := self._meeting(step):
                count[step.warp, meeting] += 1
                rounds.setdefault((meeting, count[step.warp, meeting]), []).append(n)
        for members in rounds.values():
            for one in members:
                self.later[2 * one] |= {2 * other + 1 for other in members}
                following = self._next(one)
                if following is not None:
                    self.later[2 * one + 1].add(2 * following)

    def _completions(self) -> None:
        """What commits and waits of the own warp cover."""
        for n, step in enumerate(self.steps):
            covered = WAITED.get(step.what, ("mma", "cp") if step.what == "commit" else ())
            for k in (k for k in range(n) if self.steps[k].warp == step.warp and self.steps[k].what in covered):
                self.later[2 * k + 1].add(2 * n + (step.what == "commit"))

    def _phases(self) -> None:
        """The completions of commits, and of requests with their arrivals, reach the waits for their phases."""
        for n, step in enumerate(self.steps):
            if step.what != "wait" or step.phase < 0:
                continue
            for k, other in enumerate(self.steps):
                # A phase comes after those before it, and their arrivals are published too.
                if other.what in SIGNALS and other.bar == step.bar and other.phase <= step.phase:
                    self.later[2 * k + (other.what != "expect")].add(2 * n)

    def _from(self, moment: int) -> set[int]:
        found, waiting = set[int](), [moment]
        while waiting:
            for each in self.later[waiting.pop()] - found:
                found.add(each)
                waiting.append(each)
        return found

    def ordered(self, a: int, b: int) -> bool:
        """Whether access `a` is before access `b`."""
        one, other = self.steps[a], self.steps[b]
        done = 2 * a + (one.what in ASYNCHRONOUS)
        if 2 * b in self.reached[done] or done == 2 * b:
            return True
        pipelines = PIPELINED if one.warp == other.warp else BETWEEN_THREADS
        return (one.what, other.what) in pipelines and 2 * b in self.reached[2 * a]


def places(step: Step) -> Iterator[tuple[object, bool]]:
    """What a step touches, and whether it writes."""
    if step.what in ("mma", "cp"):
        yield from ((("cells", quarter, step.area), True) for quarter in range(WARPS))
    elif step.what in ("ld", "st"):
        yield ("cells", step.warp, step.area), step.what == "st"
    elif step.what in ("request", "read"):
        yield "slot", step.what == "request"


def races(steps: list[Step]) -> set[frozenset[int]]:
    """The sites of each pair of conflicting accesses that are not in order."""
    return conflicts(Order(steps), places)


def conflicts(order: Order, places: Callable[[Any], Iterator[tuple[object, bool]]]) -> set[frozenset[int]]:
    """The same for an order; `places`: what a step touches, and whether it writes."""
    steps, found = order.steps, set[frozenset[int]]()
    touched = [(n, place, writes) for n, step in enumerate(steps) for place, writes in places(step)]
    for i, (a, place, writes) in enumerate(touched):
        for b, other, too in touched[i + 1 :]:
            if a != b and place == other and (writes or too) and not (order.ordered(a, b) or order.ordered(b, a)):
                found.add(frozenset((steps[a].site, steps[b].site)))
    return found


def unfinished(steps: list[Step]) -> set[int]:
    """The sites of operations on shared memory that no warp knows to be complete."""
    order = Order(steps)
    used = (n for n, step in enumerate(steps) if step.what in ("mma", "cp", "request"))
    return {steps[n].site for n in used if all(each % 2 for each in order.reached[2 * n + 1])}


# -- the log ------------------------------------------------------------------------------------------------------------

LOW, HIGH = 0x00080000 | TILE >> 4, 0x00004010
ALONE = ("setup", "mma", "cp", "commit", "expect", "request", "read")  # by lane 0
EVENTS: dict[str, tuple[type[effects.Effect], dict[str, Any]]] = {
    "barrier": (effects.CtaBarrier, {"waits": True}),
    "wait_ld": (effects.TensorWait, {"what": 1}),
    "wait_st": (effects.TensorWait, {"what": 2}),
    "ld": (effects.TensorLd, {"at": WordValue(0, 1), "columns": COLUMNS, "lanes": 32}),
    "st": (effects.TensorSt, {"at": WordValue(0, 1), "columns": COLUMNS, "lanes": 32}),
    "mma": (effects.TensorMma, {"at": WordValue(0, 1), "operands": 2}),
    "cp": (effects.TensorCp, {"at": WordValue(0, 1), "operands": 2, "rows": 128, "row_bytes": 16, "columns": 4}),
    "commit": (effects.TensorCommit, {"at": WordValue(0, 1), "ctas": WordValue(1)}),
    "wait": (effects.MbarrierWait, {"at": WordValue(0, 1), "parity": WordValue(0, 2)}),
    "expect": (effects.MbarrierArrive, {"at": WordValue(0, 1), "count": WordValue(1), "expected": WordValue(16)}),
    "request": (effects.LaunchRequest, {"at": WordValue(0, 1), "mbarrier_at": WordValue(0, 2), "ctas": WordValue(0xFFFF)}),
    "read": (effects.Read, {"at": WordValue(0, 1), "bytes": 16, "element": 16}),
}


def _words(step: Step) -> tuple[int, ...]:
    return words_of(step, BARRIERS[step.bar], F16_128_64)


def words_of(step: Any, bar: int, shape: int) -> tuple[int, ...]:
    """The words of a step in the log. `bar`: the address of its barrier; `shape`: the instruction descriptor of products."""
    area = step.area * COLUMNS
    return {
        "ld": (area,),
        "st": (area,),
        "mma": (area, shape, 0, LOW, HIGH, LOW, HIGH),
        "cp": (area, LOW, HIGH),
        "commit": (bar,),
        "wait": (bar, step.area),
        "expect": (bar,),
        "request": (SLOT, bar),
        "read": (SLOT,),
    }.get(step.what, ())


def log_of(steps: list[Step]) -> tuple[list[Template], History]:
    """The templates and the log of a program; the number of a template, and of its site, is that of the step."""
    templates = [_template(step) for step in steps]
    extra = _setup(len(templates))
    templates += [template for template, _ in extra]
    lanes: list[list[int]] = [[] for _ in range(WARPS * LANES)]
    for step in steps:
        for lane in range(LANES):
            if step.what == "setup":
                for template, words in extra:
                    if lane == 0 or isinstance(template.events[0], (effects.TensorAllocRequest, effects.TensorAlloc)):
                        lanes[lane] += [template.number, *words]
            elif lane == 0 or step.what not in ALONE:
                lanes[step.warp * LANES + lane] += [step.site, *_words(step)]
    return templates, History(filled(lanes), WARPS * LANES, WINDOW, BYTES)


def filled(lanes: list[list[int]]) -> npt.NDArray[np.uint32]:
    """The log of all threads, shape [warps, words, lanes], from the words of each."""
    log = np.zeros((len(lanes) // LANES, 8 + max(map(len, lanes)), LANES), np.uint32)
    for thread, words in enumerate(lanes):
        log[thread // LANES, : len(words) + 1, thread % LANES] = [*words, END]
    return log


def _template(step: Step) -> Template:
    if step.what == "setup":
        return Template(step.site, 1, [])
    kind, fields = EVENTS[step.what]
    return Template(step.site, 1 + len(_words(step)), [kind(site=step.site, **fields)])


Made = list[tuple[Template, tuple[int, ...]]]
EventRow = tuple[type[effects.Effect], dict[str, Any], tuple[int, ...]]


def _setup(last: int) -> Made:
    """Warp 0 initialises the mbarriers and operands, and allocates."""
    return made(
        (
            *((effects.MbarrierInit, {"at": WordValue(0, 1), "count": WordValue(1)}, (bar,)) for bar in BARRIERS),
            (effects.Fill, {"at": WordValue(0, 1), "size": WordValue(0, 2)}, (TILE, 128 * 32)),
            (effects.ProxyFence, {"memories": 1}, ()),
            (effects.TensorAllocRequest, {"columns": WordValue(0, 1)}, (AREAS * COLUMNS,)),
            (
                effects.TensorAlloc,
                {"at": WordValue(0, 1), "columns": WordValue(0, 2), "cells": WordValue(0, 3)},
                (WORD, AREAS * COLUMNS, 0),
            ),
        ),
        last,
    )


def made(events: tuple[EventRow, ...], last: int) -> Made:
    """A template and the words for each event, numbered from `last` + 1."""
    return [
        (Template(number, 1 + len(words), [kind(site=number, **fields)]), words)
        for number, (kind, fields, words) in enumerate(events, last + 1)
    ]
