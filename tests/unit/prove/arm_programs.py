"""Random programs of two warps with barriers of the CTA and of warps, in loops and in branches that whole warps take; whether they race.

An access is compared with those of all other threads by counts: the barriers of the CTA, and of the warp, that each thread has passed.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from proof_cases import answer

WARP, THREADS = 32, 64
_PLACES: dict[str, Callable[[int], int]] = {
    "mov.u32 %r17, %r2;\n": lambda t: t,
    "xor.b32 %r17, %r2, 1;\n": lambda t: t ^ 1,
    "xor.b32 %r17, %r2, 16;\n": lambda t: t ^ 16,
    "xor.b32 %r17, %r2, 32;\n": lambda t: t ^ 32,
    "add.s32 %r17, %r2, 1;\n": lambda t: t + 1,
    "add.s32 %r17, %r2, 64;\n": lambda t: t + 64,
}
_GUARDS: dict[str, Callable[[int], bool]] = {
    "setp.ge.u32 %p5, %r2, 0;\n": lambda _: True,
    "setp.lt.u32 %p5, %r2, 32;\n": lambda t: t < WARP,
    "setp.lt.u32 %p5, %r2, 16;\n": lambda t: t < WARP // 2,
}


@dataclass(frozen=True)
class Access:
    """An access of shared memory."""

    place: str
    guard: str
    writes: bool


@dataclass(frozen=True)
class Arms:
    """The steps of the first warp, and of the second one."""

    first: tuple[Step, ...]
    second: tuple[Step, ...]


@dataclass(frozen=True)
class Rounds:
    """Steps that each thread goes through `n` times."""

    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Leave:
    """A thread leaves where `n` is less."""

    least: int


Step = Access | Arms | Rounds | Leave | str
"""A string is a barrier."""
_BARRIERS = ("bar.warp.sync -1;\n", "bar.sync 0;\n")


@dataclass
class Passed:
    """The barriers that a thread has passed, and its accesses: those counts, the place, and whether it writes."""

    cta: int = 0
    warp: int = 0
    accesses: list[tuple[int, int, int, bool]] = field(default_factory=list)
    left: bool = False

    def run(self, steps: Iterable[Step], thread: int, n: int) -> Passed:
        """The steps of a thread."""
        for each in steps:
            if self.left:
                break
            if isinstance(each, Arms):
                self.run(each.first if thread < WARP else each.second, thread, n)
            elif isinstance(each, Rounds):
                self.run(each.steps * n, thread, n)
            elif isinstance(each, Leave):
                self.left = n < each.least
            elif isinstance(each, str):
                self.cta += each == _BARRIERS[1]
                self.warp += 1
            elif _GUARDS[each.guard](thread):
                self.accesses.append((self.cta, self.warp, _PLACES[each.place](thread), each.writes))
        return self


def steps_of(rng: random.Random, most: int, *, arms: bool, by_n: bool, rounds: bool = True) -> tuple[Step, ...]:
    """Some random steps. `by_n`: also rounds, if there may be some, and leaves."""
    return tuple(_step(rng, arms=arms, by_n=by_n, rounds=rounds) for _ in range(rng.randint(1, most)))


def _step(rng: random.Random, *, arms: bool, by_n: bool, rounds: bool) -> Step:
    if arms and rng.random() < 0.3:
        begin = (Leave(1),) if by_n and rng.random() < 0.5 else ()
        first, second = (steps_of(rng, 4, arms=False, by_n=by_n, rounds=rounds) for _ in range(2))
        return Arms((*begin, *first), (*begin, *second))
    if by_n and rng.random() < 0.1:
        return Leave(rng.randint(1, 2))
    if by_n and rounds and rng.random() < 0.2:
        return Rounds(steps_of(rng, 4, arms=arms, by_n=by_n, rounds=False))
    if rng.random() < 0.4:
        return rng.choice(_BARRIERS)
    return Access(rng.choice([*_PLACES]), rng.choice([*_GUARDS]), rng.random() < 0.5)


def text_of(steps: Iterable[Step], label: str = "") -> str:
    """The steps as PTX."""
    return "".join(_text(each, f"{label}_{number}") for number, each in enumerate(steps))


def _text(step: Step, label: str) -> str:
    if isinstance(step, str):
        return step
    if isinstance(step, Access):
        how = "st.shared.u32 [%r19], %r2" if step.writes else "ld.shared.u32 %r20, [%r19]"
        return f"{step.place}mad.lo.s32 %r19, %r17, 4, %r4;\n{step.guard}@%p5 {how};\n"
    if isinstance(step, Leave):
        return f"setp.lt.s32 %p7, %r1, {step.least};\n@%p7 bra $END;\n"
    if isinstance(step, Rounds):
        head = f"mov.u32 %r21, 0;\n$R{label}:\nsetp.ge.s32 %p8, %r21, %r1;\n@%p8 bra $Q{label};\n"
        return f"{head}{text_of(step.steps, label)}add.s32 %r21, %r21, 1;\nbra $R{label};\n$Q{label}:\n"
    first, second = text_of(step.first, label), text_of(step.second, label)
    return f"setp.lt.u32 %p6, %r2, 32;\n@%p6 bra $A{label};\n{second}bra $J{label};\n$A{label}:\n{first}$J{label}:\n"


def races(steps: tuple[Step, ...]) -> bool:
    """Whether two threads race in a launch with a small `n`."""
    return any(_race(steps, n) for n in range(4))


def _race(steps: tuple[Step, ...], n: int) -> bool:
    lives = [Passed().run(steps, thread, n) for thread in range(THREADS)]
    places = defaultdict[int, list[tuple[int, tuple[int, int, int, bool]]]](list)
    for thread, life in enumerate(lives):
        for each in life.accesses:
            places[each[2]].append((thread, each))
    return any(_meet(lives, found) for found in places.values())


def _meet(lives: list[Passed], found: list[tuple[int, tuple[int, int, int, bool]]]) -> bool:
    for place, (thread, (cta, warp, _, writes)) in enumerate(found):
        for other, (its_cta, its_warp, _, also) in found[place + 1 :]:
            lanes = thread // WARP == other // WARP and warp != its_warp
            first = thread if cta < its_cta else other  # barriers do not wait for a thread that has left
            between = cta != its_cta and lives[first].cta > min(cta, its_cta)
            if thread != other and (writes or also) and not lanes and not between:
                return True
    return False


def wrong_arms(seeds: Iterable[int], *, by_n: bool = False) -> tuple[list[int], int]:
    """The programs with a race that are proven, and how many are proven."""
    programs = {seed: steps_of(random.Random(seed), 5, arms=True, by_n=by_n) for seed in seeds}
    proven = [seed for seed, steps in programs.items() if answer(text_of(steps) + "$END:", seconds=5).answer == "proven"]
    return [seed for seed in proven if races(programs[seed])], len(proven)
