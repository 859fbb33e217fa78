"""The oracle on several launches (R-GM14): streams, and programmatic dependent launch."""

from __future__ import annotations

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


def races(bodies: list[str], follows: list[tuple[tuple[int, ...], bool]]) -> int:
    """Launch each body after some of those before it, as a programmatic dependent or not: how many pairs race."""
    text = PTX + "".join(ENTRY.format(name=f"k{number}", body=body.replace("; ", ";\n  ")) for number, body in enumerate(bodies))
    backend, one = VirtualBackend(), (1, 1, 1)
    holder: Any = SimpleNamespace(backend=backend, device_lost=False)
    with recording(global_memory=True) as trace, placed(holder) as placement:
        handle, values = backend.load(text), parameters(placement, consan.Kernel(text, entry="k0"), [np.zeros(64, np.int32)])
        for number, (after, programmatic) in enumerate(follows):
            trace.launches.append(Launch(len(trace.waves), after, programmatic))
            backend.launch(handle, f"k{number}", one, one, values, shared=0, seed=0, timeout=60)
    found = check_globals(trace)
    assert all(one.kinds == {"global-race"} for one in found.pairs.values())
    return len(found.pairs)


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
    assert races(bodies, [FIRST, second]) == expected


def test_a_dependent_comes_after_what_its_predecessor_came_after() -> None:
    assert races([STORE, "", LOAD], [FIRST, ((0,), False), ((1,), True)]) == 0
    assert races([STORE, "", LOAD], [FIRST, ((0,), True), ((1,), True)]) == 1
    assert races([STORE, WAIT, f"{WAIT} {LOAD}"], [FIRST, ((0,), True), ((1,), True)]) == 0
