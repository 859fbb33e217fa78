"""The oracle on several launches (R-GM14): streams, and programmatic dependent launch."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from oracle_grid import check_globals
from oracle_run import parameters
from oracle_trace import Launch, recording

import consan
from consan.backends.virtual import VirtualBackend
from consan.launching.placement import placed

PTX = """.version 8.7
.target sm_90a
.address_size 64
"""
ENTRY = """.visible .entry {name}(.param .u64 out)
{{
  .reg .b32 %r<2>; .reg .b64 %a;
  ld.param.u64 %a, [out];
  cvta.to.global.u64 %a, %a;
  {body}
  ret;
}}
"""
STORE, LOAD = "st.global.u32 [%a], 1;", "ld.global.u32 %r1, [%a];"
WAIT, START = "griddepcontrol.wait;", "griddepcontrol.launch_dependents;"


Pairs = set[frozenset[int]]  # of lines


def text_of(bodies: list[str]) -> str:
    """A module with a kernel for each body."""
    return PTX + "".join(ENTRY.format(name=f"k{number}", body=body.replace("; ", ";\n  ")) for number, body in enumerate(bodies))


def races(bodies: list[str], follows: list[tuple[tuple[int, ...], bool]]) -> Pairs:
    """Launch each body after some of those before it, as a programmatic dependent or not: the pairs that race."""
    text = text_of(bodies)
    backend, one = VirtualBackend(), (1, 1, 1)
    holder: Any = SimpleNamespace(backend=backend, device_lost=False)
    with recording(global_memory=True) as trace, placed(holder) as placement:
        handle, values = backend.load(text), parameters(placement, consan.Kernel(text, entry="k0"), [np.zeros(64, np.int32)])
        for number, (after, programmatic) in enumerate(follows):
            trace.launches.append(Launch(len(trace.waves), after, programmatic))
            backend.launch(handle, f"k{number}", one, one, values, shared=0, seed=0, timeout=60)
    found = check_globals(trace)
    assert all(one.kinds == {"global-race"} for one in found.pairs.values())
    return {frozenset(pair) for pair in found.pairs}


STREAM, OTHER_STREAM, DEPENDENT = ((0,), False), ((), False), ((0,), True)
FIRST = ((), False)


@pytest.mark.parametrize(
    ("bodies", "second", "expected"),
    [
        ([STORE, LOAD], STREAM, 0),
        ([STORE, LOAD], OTHER_STREAM, 1),
        ([STORE, LOAD], DEPENDENT, 1),
        ([STORE, f"{WAIT} {LOAD}"], DEPENDENT, 0),
        ([STORE, f"{LOAD} {WAIT}"], DEPENDENT, 1),
        ([f"{STORE} {START}", LOAD], DEPENDENT, 1),  # it publishes nothing
        ([f"{STORE} {START}", f"{WAIT} {LOAD}"], DEPENDENT, 0),
        ([f"{START} {STORE}", f"{WAIT} {LOAD}"], DEPENDENT, 0),
        ([LOAD, LOAD], OTHER_STREAM, 0),
        ([LOAD, STORE], DEPENDENT, 1),
        ([STORE, f"{WAIT} {LOAD}"], OTHER_STREAM, 1),  # there is nothing that it waits for
        (["red.relaxed.gpu.global.add.u32 [%a], 1;"] * 2, OTHER_STREAM, 0),
        (["red.relaxed.cta.global.add.u32 [%a], 1;"] * 2, STREAM, 0),
    ],
)
def test_two_launches(bodies: list[str], second: tuple[tuple[int, ...], bool], expected: int) -> None:
    assert len(races(bodies, [FIRST, second])) == expected


def test_a_dependent_comes_after_what_its_predecessor_came_after() -> None:
    assert not races([STORE, "", LOAD], [FIRST, ((0,), False), ((1,), True)])
    assert len(races([STORE, "", LOAD], [FIRST, ((0,), True), ((1,), True)])) == 1
    assert not races([STORE, WAIT, f"{WAIT} {LOAD}"], [FIRST, ((0,), True), ((1,), True)])


PIECES = (STORE, LOAD, WAIT, START, "st.global.u32 [%a+4], 2;", "ld.global.u32 %r1, [%a+4];", "red.relaxed.gpu.global.add.u32 [%a], 1;")


@dataclass
class Sequence:
    """Random launches in two streams, for the product and for the oracle."""

    bodies: list[str] = field(default_factory=list)
    steps: list[tuple[str, int, int]] = field(default_factory=list)  # "launch" and its stream, or "wait" and the two streams
    follows: list[tuple[tuple[int, ...], bool]] = field(default_factory=list)

    @classmethod
    def drawn(cls, random: Random) -> Sequence:
        """A sequence of two to five launches."""
        made = cls()
        before, last = [set[int](), set[int]()], [-1, -1]
        for _ in range(random.randint(2, 5)):
            stream = random.randrange(2)
            if random.random() < 0.3:
                before[stream] |= before[1 - stream]
                last[stream] = -1
                made.steps.append(("wait", stream, 1 - stream))
            programmatic = random.random() < 0.6
            made.follows.append(((last[stream],), True) if programmatic and last[stream] >= 0 else (tuple(sorted(before[stream])), False))
            made.steps.append(("launch", stream, int(programmatic)))
            last[stream] = len(made.bodies)
            before[stream].add(last[stream])
            made.bodies.append(" ".join(random.choices(PIECES, k=random.randint(1, 3))))
        return made

    def found(self) -> Pairs:
        """The pairs that the product reports between launches."""
        text, out = text_of(self.bodies), np.zeros(64, np.int32)
        with consan.check(device="cpu") as live:
            streams, number = (consan.Stream(), consan.Stream()), 0
            for step, stream, other in self.steps:
                if step == "wait":
                    streams[stream].wait(streams[other])
                    continue
                kernel = consan.Kernel(text, entry=f"k{number}")
                consan.launch(kernel, 1, 1, [out], device="cpu", engine="record", stream=streams[stream], programmatic=bool(other))
                number += 1
        assert not live.report.incomplete
        assert all(each.kind == "global-race" for each in live.report.findings)
        return {frozenset(access.ptx_line for access in each.accesses) for each in live.report.findings}


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 400))])
def test_the_product_agrees_on_random_launches(seed: int) -> None:
    drawn = Sequence.drawn(Random(seed))
    assert drawn.found() == races(drawn.bodies, drawn.follows), (drawn.bodies, drawn.steps)
