"""Random rings of stages that threads hand over by mbarriers: as PTX, and played by all threads in random order.

Two threads fill stages, with stores or a bulk copy, and two read them. Most rings have a fault. They are played with vector clocks for what
mbarriers order; nothing of consan is used there.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from consan.instrument.ptx import parse
from consan.prove import proof

HALF = 2  # threads of a role
BLOCK = 2 * HALF
BYTES = 16  # of a stage that a copy fills: one element of 4 bytes for each thread, and two more
ELEMENTS = 4


@dataclass(frozen=True)
class RingStep:
    """One statement of a round: a wait, an arrival, an access or a copy at the stage of round `k + ahead`.

    `flip`: what is added to the parity of a wait, or to the element of an access; how many groups a wait for groups leaves. `below`: only
    threads below that number of their role take part. `behind`: not in the first rounds.
    """

    kind: str
    array: str = ""
    ahead: int = 0
    flip: int = 0
    below: int = HALF
    behind: int = 0


@dataclass(frozen=True)
class Ring:
    """Two roles. `counts`: arrivals of a phase, and `begun`: how many mbarriers are initialised, of each array."""

    stages: int
    fill: tuple[RingStep, ...]
    use: tuple[RingStep, ...]
    counts: dict[str, int]
    begun: dict[str, int]
    expected: int
    synced: bool = True
    longer: int = 0  # rounds that only the second role has


def ring(seed: int) -> Ring:
    """A ring, with a fault in most cases."""
    some = random.Random(seed)
    stages = some.choice((1, 1, 2, 2, 3, 4))
    copies = some.random() < 0.5
    skips = some.random() < 0.25
    wait = RingStep("wait", "empty", behind=stages, ahead=-stages) if skips else RingStep("wait", "empty", flip=1)
    if copies:
        fill = [replace(wait, below=1), RingStep("expect", "full", below=1), RingStep("copy", "full", below=1)]
    else:
        fill = [wait, RingStep("write"), RingStep("arrive", "full")]
    use = [RingStep("wait", "full"), RingStep("read", flip=some.choice((0, 0, 1))), RingStep("arrive", "empty")]
    if some.random() < 0.2:
        use.insert(2, RingStep("write"))
    found = Ring(stages, tuple(fill), tuple(use), {"full": 1 if copies else HALF, "empty": HALF}, {"full": stages, "empty": stages}, BYTES)
    for _ in range(some.choice((0, 1, 1, 2))):
        found = _with_fault(found, some)
    return found


def ring_of_groups(seed: int) -> Ring:
    """A ring with groups of asynchronous operations: `cp.async` that fills stages, or bulk stores that empty them. Most have a fault."""
    some = random.Random(f"groups {seed}")
    stages = some.choice((1, 2, 2, 3))
    wait, free = RingStep("wait", "full"), RingStep("arrive", "empty")
    empty, full, longer = RingStep("wait", "empty", flip=1), RingStep("arrive", "full"), 0
    if some.random() < 0.5:
        late = int(some.random() < 0.5)  # a stage is handed over in the round behind
        fill = [empty, RingStep("issue"), RingStep("drain", flip=late), replace(full, ahead=-late, behind=late)]
        use, counts, longer = [wait, RingStep("read", flip=some.choice((0, 1))), free], {"full": HALF, "empty": HALF}, -late
    else:
        late = int(some.random() < 0.5 and stages > 1)
        fill = [replace(empty, below=1), RingStep("expect", "full", below=1), RingStep("copy", "full", below=1)]
        send, sent = RingStep("send", below=1), RingStep("sent", below=1, flip=late)
        use, counts = [wait, send, sent, replace(free, below=1, ahead=-late, behind=late)], {"full": 1, "empty": 1}
    found = Ring(stages, tuple(fill), tuple(use), counts, {"full": stages, "empty": stages}, BYTES, longer=longer)
    for _ in range(some.choice((0, 1, 1, 1, 2))):
        found = _with_fault(found, some)
    return found


def _with_fault(ring: Ring, some: random.Random) -> Ring:
    """A change that is a fault, or only looks like one."""
    role = some.choice(("fill", "use"))
    steps = list(getattr(ring, role))
    at = some.randrange(len(steps))
    how = some.choice(
        ("drop", "swap", "flip", "ahead", "below", "count", "begun", "synced", "expected", "longer", "twice", "behind", "array")
    )
    if how == "drop":
        del steps[at]
    elif how == "swap":
        other = some.randrange(len(steps))
        steps[at], steps[other] = steps[other], steps[at]
    elif how == "twice":
        steps.insert(at, steps[at])
    elif how == "array":
        steps[at] = replace(steps[at], array={"full": "empty", "empty": "full"}.get(steps[at].array, ""))
    elif how in ("flip", "ahead", "below", "behind"):
        value = {"flip": 1 - steps[at].flip, "ahead": some.choice((-1, 1)), "below": 1, "behind": some.choice((1, 2))}[how]
        steps[at] = replace(steps[at], **{how: value})
    if how in ("count", "begun"):
        table = dict(ring.counts if how == "count" else ring.begun)
        array = some.choice(("full", "empty"))
        table[array] = max(1, table[array] + some.choice((-1, 1)))
        return replace(ring, counts=table) if how == "count" else replace(ring, begun={**table, array: min(table[array], ring.stages)})
    if how == "expected":
        return replace(ring, expected=some.choice((BYTES // 2, 2 * BYTES)))
    if how in ("synced", "longer"):
        return replace(ring, synced=False) if how == "synced" else replace(ring, longer=some.choice((-1, 1)))
    return replace(ring, **{role: tuple(steps)})


class Misuse(Exception):  # noqa: N818
    """An mbarrier is used in a way that has no meaning."""


class Overrun(Exception):  # noqa: N818
    """An mbarrier gets more arrivals than it counts: not a matter of proofs, so the execution ends there."""


class _Mbarrier:
    def __init__(self) -> None:
        self.phase, self.count, self.left, self.bytes = 0, 0, 0, 0
        self.begins: dict[object, int] = {}
        self.arrived: dict[object, int] = {}
        self.completed: dict[object, int] = {}

    def turn(self) -> None:
        """Complete the phase if nothing is left."""
        if not self.left and not self.bytes:
            _join(self.completed, self.arrived)
            self.phase, self.left = self.phase + 1, self.count


def _join(one: dict[object, int], other: dict[object, int]) -> None:
    for key, value in other.items():
        one[key] = max(one.get(key, 0), value)


class Play:
    """One execution of a ring, in random order. `race`: whether it showed one."""

    def __init__(self, ring: Ring, rounds: int, some: random.Random) -> None:
        self._ring, self._some, self.race = ring, some, False
        self._mbarriers = {array: [_Mbarrier() for _ in range(ring.stages)] for array in ("full", "empty")}
        self._clocks: list[dict[object, int]] = [{} for _ in range(BLOCK)]
        self._seen: dict[int, list[tuple[object, int, bool, bool, dict[object, int]]]] = {}
        self._flying: list[tuple[object, _Mbarrier, int]] = []
        self._groups: dict[tuple[int, str], list[object]] = {}
        self._time = 0
        threads = {thread: self._steps(thread, rounds) for thread in range(BLOCK)}
        waiting: dict[int, tuple[_Mbarrier, int]] = {}
        self._begin()
        while threads and not self.race:
            free = [each for each in threads if each not in waiting or self._is_over(*waiting[each])]
            if self._flying and (not free or some.random() < 0.2):
                self._complete()
            elif not free:
                return
            else:
                thread = some.choice(free)
                if thread in waiting:
                    _join(self._clocks[thread], waiting.pop(thread)[0].completed)
                step = next(threads[thread], None)
                if step is None:
                    del threads[thread]
                elif isinstance(step, tuple):
                    waiting[thread] = step

    def _begin(self) -> None:
        for array, some in self._mbarriers.items():
            for each in some[: self._ring.begun[array]]:
                each.count = each.left = self._ring.counts[array]
                self._time += 1
                self._clocks[0][0] = self._time
                each.begins = {0: self._time}
        if self._ring.synced:
            for clock in self._clocks:
                _join(clock, self._clocks[0])

    def _is_over(self, mbarrier: _Mbarrier, parity: int) -> bool:
        return mbarrier.phase % 2 != parity

    def _complete(self) -> None:
        actor, mbarrier, size = self._flying.pop(self._some.randrange(len(self._flying)))
        mbarrier.bytes -= size
        _join(mbarrier.arrived, {actor: 1})
        mbarrier.turn()

    def _steps(self, thread: int, rounds: int) -> Iterator[object]:
        """The steps of a thread; a pair where it waits."""
        second, lane = thread >= HALF, thread % HALF
        for k in range(max(0, rounds + self._ring.longer * second)):
            for step in self._ring.use if second else self._ring.fill:
                if lane >= step.below or k < step.behind:
                    continue
                place = (k + step.ahead) % self._ring.stages
                if step.kind == "wait":
                    mbarrier = self._of(thread, step.array, place)
                    parity = ((k + step.ahead) // self._ring.stages + step.flip) % 2
                    yield mbarrier, parity
                else:
                    getattr(self, f"_{step.kind}")(thread, step, place, (lane + step.flip) % HALF)
                    yield step

    def _of(self, thread: int, array: str, place: int) -> _Mbarrier:
        if not array:
            raise Misuse
        found = self._mbarriers[array][place]
        if not found.count or any(self._clocks[thread].get(key, 0) < value for key, value in found.begins.items()):
            raise Misuse
        return found

    def _arrive(self, thread: int, step: RingStep, place: int, _: int, expected: int = 0) -> None:
        found = self._of(thread, step.array, place)
        if not found.left:
            raise Overrun
        found.bytes += expected
        self._tick(thread)
        _join(found.arrived, self._clocks[thread])
        found.left -= 1
        found.turn()

    def _expect(self, thread: int, step: RingStep, place: int, _: int) -> None:
        self._arrive(thread, step, place, 0, self._ring.expected)

    def _copy(self, thread: int, step: RingStep, place: int, _: int) -> None:
        found = self._of(thread, step.array, place)
        self._tick(thread)
        actor = ("copy", self._time)
        for element in range(ELEMENTS):
            self._touch(place * ELEMENTS + element, actor, 1, self._clocks[thread], writes=True, late=True)
        self._flying.append((actor, found, BYTES))

    def _issue(self, thread: int, _: RingStep, place: int, lane: int) -> None:
        """`cp.async`, and its group's end."""
        actor = self._begun_group(thread, "drain")
        self._touch(place * ELEMENTS + lane, actor, 1, self._clocks[thread], writes=True, late=False)

    def _send(self, thread: int, _: RingStep, place: int, __: int) -> None:
        """A bulk store, and its group's end."""
        actor = self._begun_group(thread, "sent")
        for element in range(ELEMENTS):
            self._touch(place * ELEMENTS + element, actor, 1, self._clocks[thread], writes=False, late=True)

    def _begun_group(self, thread: int, kind: str) -> object:
        self._tick(thread)
        actor = kind, self._time
        self._groups.setdefault((thread, kind), []).append(actor)
        return actor

    def _drain(self, thread: int, step: RingStep, _: int, __: int) -> None:
        self._tick(thread)
        groups = self._groups.get((thread, step.kind), [])
        _join(self._clocks[thread], dict.fromkeys(groups[: len(groups) - step.flip], 1))

    _sent = _drain

    def _write(self, thread: int, _: RingStep, place: int, lane: int) -> None:
        self._tick(thread)
        self._touch(place * ELEMENTS + lane, thread, self._time, self._clocks[thread], writes=True, late=False)

    def _read(self, thread: int, _: RingStep, place: int, lane: int) -> None:
        self._tick(thread)
        self._touch(place * ELEMENTS + lane, thread, self._time, self._clocks[thread], writes=False, late=False)

    def _tick(self, thread: int) -> None:
        self._time += 1
        self._clocks[thread][thread] = self._time

    def _touch(self, element: int, actor: object, time: int, clock: dict[object, int], *, writes: bool, late: bool) -> None:
        for other, then, wrote, was_late, _ in self._seen.setdefault(element, []):
            ordered = clock.get(other, 0) >= then and not (late and wrote and not was_late)  # no proxy fence lies between
            self.race |= (writes or wrote) and not ordered and other != actor
        self._seen[element].append((actor, time, writes, late, dict(clock)))


def is_wrong(ring: Ring, seed: int, plays: int = 12) -> bool:
    """Whether a ring races or misuses an mbarrier in some executions."""
    some = random.Random(seed)
    return any(_is_wrong_once(ring, rounds, some) for rounds in range(7) for _ in range(plays))


def _is_wrong_once(ring: Ring, rounds: int, some: random.Random) -> bool:
    try:
        return Play(ring, rounds, some).race
    except Misuse:
        return True
    except Overrun:
        return False


_ENDS = {"issue": "cp.async.wait_all;", "send": "cp.async.bulk.wait_group 0;"}


class RingWriter:
    """Writes a ring as PTX: a kernel of one CTA with the number of rounds as a parameter."""

    def __init__(self, ring: Ring) -> None:
        self._ring, self._lines, self._count = ring, [], 20

    def text(self) -> str:
        """The module."""
        head = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 g, .param .u32 n, .param .u64 h)\n"
        shared = "".join(f".shared .align 8 .b8 {array}[{8 * self._ring.stages}];\n" for array in ("full", "empty"))
        shared += f".shared .align 16 .b8 tile[{4 * ELEMENTS * self._ring.stages}];\n"
        self._lines += [
            "ld.param.u64 %rd1, [g];", "ld.param.u64 %rd2, [h];", "ld.param.u32 %r1, [n];", "mov.u32 %r2, %tid.x;",
            f"rem.u32 %r3, %r2, {HALF};",
            "setp.ne.u32 %p1, %r2, 0;", "@%p1 bra $I;",
        ]  # fmt: skip
        for array in ("full", "empty"):
            for place in range(self._ring.begun[array]):
                self._lines.append(f"mbarrier.init.shared::cta.b64 [{array}+{8 * place}], {self._ring.counts[array]};")
        self._lines += ["$I:", *(["bar.sync 0;"] if self._ring.synced else []), f"setp.ge.u32 %p2, %r2, {HALF};", "@%p2 bra $U;"]
        self._role(self._ring.fill, "F", 0)
        self._lines += ["bra $X;", "$U:"]
        self._role(self._ring.use, "U", self._ring.longer)
        kinds = {each.kind for each in (*self._ring.fill, *self._ring.use)}
        ends = [text for kind, text in _ENDS.items() if kind in kinds]  # no operation is in flight when its thread ends
        body = "\n".join([*self._lines, "$X:", *ends, "ret;"])
        registers = f".reg .b32 %r<{self._count + 1}>;\n.reg .pred %p<{self._count + 1}>;\n.reg .b64 %rd<9>;\n"
        return f"{head}.reqntid {BLOCK}, 1, 1\n{{\n{registers}{shared}{body}\n}}\n"

    def _new(self) -> int:
        self._count += 1
        return self._count

    def _role(self, steps: Iterable[RingStep], name: str, longer: int) -> None:
        self._lines += [
            f"add.s32 %r4, %r1, {longer};", "mov.u32 %r5, 0;", "setp.le.s32 %p3, %r4, 0;", f"@%p3 bra $E{name};", f"$L{name}:",
        ]  # fmt: skip
        for step in steps:
            self._step(step)
        self._lines += ["add.s32 %r5, %r5, 1;", "setp.lt.s32 %p3, %r5, %r4;", f"@%p3 bra $L{name};", f"$E{name}:"]

    def _step(self, step: RingStep) -> None:
        skip, label = self._new(), f"$S{self._new()}"
        if step.below < HALF:
            self._lines += [f"setp.ge.u32 %p{skip}, %r3, {step.below};", f"@%p{skip} bra {label};"]
        if step.behind:
            early = self._new()
            self._lines += [f"setp.lt.s32 %p{early}, %r5, {step.behind};", f"@%p{early} bra {label};"]
        stages, round_, stage, at = self._ring.stages, self._new(), self._new(), self._new()
        self._lines.append(f"add.s32 %r{round_}, %r5, {step.ahead + 2 * stages * HALF};")  # an even number of times around
        self._lines.append(f"rem.u32 %r{stage}, %r{round_}, {stages};")
        if step.array:
            self._lines += [f"mov.u32 %r{at}, {step.array};", f"mad.lo.s32 %r{at}, %r{stage}, 8, %r{at};"]
        getattr(self, f"_{step.kind}")(step, round_, stage, at)
        self._lines.append(f"{label}:")

    def _wait(self, step: RingStep, round_: int, _: int, at: int) -> None:
        parity, done = self._new(), self._new()
        self._lines += [
            f"div.u32 %r{parity}, %r{round_}, {self._ring.stages};", f"add.s32 %r{parity}, %r{parity}, {step.flip};",
            f"and.b32 %r{parity}, %r{parity}, 1;", f"$W{done}:",
            f"mbarrier.try_wait.parity.shared::cta.b64 %p{done}, [%r{at}], %r{parity};", f"@!%p{done} bra $W{done};",
        ]  # fmt: skip

    def _arrive(self, _: RingStep, __: int, ___: int, at: int) -> None:
        self._lines.append(f"mbarrier.arrive.shared::cta.b64 _, [%r{at}];")

    def _expect(self, _: RingStep, __: int, ___: int, at: int) -> None:
        self._lines.append(f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r{at}], {self._ring.expected};")

    def _copy(self, _: RingStep, __: int, stage: int, at: int) -> None:
        place = self._new()
        self._lines += [f"mov.u32 %r{place}, tile;", f"mad.lo.s32 %r{place}, %r{stage}, {BYTES}, %r{place};"]
        self._lines.append(f"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r{place}], [%rd1], {BYTES}, [%r{at}];")

    def _issue(self, step: RingStep, _: int, stage: int, __: int) -> None:
        self._lines += [f"cp.async.ca.shared.global [%r{self._element(step, stage)}], [%rd1], 4;", "cp.async.commit_group;"]

    def _drain(self, step: RingStep, _: int, __: int, ___: int) -> None:
        self._lines.append(f"cp.async.wait_group {step.flip};")

    def _send(self, _: RingStep, __: int, stage: int, ___: int) -> None:
        place = self._new()
        self._lines += [
            f"mov.u32 %r{place}, tile;", f"mad.lo.s32 %r{place}, %r{stage}, {BYTES}, %r{place};", f"mul.wide.u32 %rd3, %r5, {BYTES};",
            "add.s64 %rd3, %rd3, %rd2;", f"cp.async.bulk.global.shared::cta.bulk_group [%rd3], [%r{place}], {BYTES};",
            "cp.async.bulk.commit_group;",
        ]  # fmt: skip

    def _sent(self, step: RingStep, _: int, __: int, ___: int) -> None:
        self._lines.append(f"cp.async.bulk.wait_group.read {step.flip};")

    def _element(self, step: RingStep, stage: int) -> int:
        lane, place = self._new(), self._new()
        self._lines += [
            f"add.s32 %r{lane}, %r3, {step.flip};", f"and.b32 %r{lane}, %r{lane}, {HALF - 1};", f"mov.u32 %r{place}, tile;",
            f"mad.lo.s32 %r{place}, %r{stage}, {BYTES}, %r{place};", f"mad.lo.s32 %r{place}, %r{lane}, 4, %r{place};",
        ]  # fmt: skip
        return place

    def _write(self, step: RingStep, _: int, stage: int, __: int) -> None:
        self._lines.append(f"st.shared.u32 [%r{self._element(step, stage)}], 1;")

    def _read(self, step: RingStep, _: int, stage: int, __: int) -> None:
        self._lines.append(f"ld.shared.u32 %r{self._new()}, [%r{self._element(step, stage)}];")


def answer_of_text(text: str) -> bool:
    """Whether a ring's kernel is proven."""
    module = parse(text, "ring.ptx")
    return (
        proof.prove(module.functions[0], module, (BLOCK, 1, 1), (0, 2), [lambda launch: launch.grid[0].term == 1], 10).answer
        == proof.PROVEN
    )


def wrong_rings(seeds: Iterable[int], made: Callable[[int], Ring] = ring) -> tuple[list[int], int]:
    """Random rings that are proven and wrong; and how many are proven."""
    proven = [seed for seed in seeds if answer_of_text(RingWriter(made(seed)).text())]
    return [seed for seed in proven if is_wrong(made(seed), seed)], len(proven)
