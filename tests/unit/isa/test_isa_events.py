"""The event of an instruction: what a recorder gets from the table without looking at opcodes."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from consan.instrument.isa import InstructionEvent, lookup
from consan.instrument.ptx import parse

_MODULE = ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{{\n.reg .pred p;\n{};\n}}\n"
_CORPUS = Path(__file__).with_name("isa_instructions.txt")


def event_of(text: str) -> InstructionEvent:
    body = parse(_MODULE.format(text)).functions[0].body
    assert body is not None
    instruction = next(iter(body.instructions()))
    row = lookup(instruction.parts)
    assert row is not None
    return row.event(instruction)


class Case(NamedTuple):
    text: str
    accesses: tuple[tuple[str, str, int, str], ...] = ()  # kind, space, bytes (0: run time), proxy
    orders: tuple[str, ...] = ()
    scope: str = "none"
    suspends: bool = False
    completion: str = "sync"


CASES = [
    Case("ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [%r1+16]", (("read", "shared", 16, "generic"),)),
    Case("st.shared.u32 [tile+4], 7", (("write", "shared", 4, "generic"),)),
    Case("st.release.gpu.global.u32 [%rd1], %r2", (("write", "global", 4, "generic"),), ("release",), "gpu"),
    Case(
        "atom.acq_rel.cta.shared.add.u32 %r1, [%r2], 1",
        (("rmw", "shared", 4, "generic"),),
        ("acquire", "release"),
        "cta",
    ),
    Case("bar.sync 0", (), ("acquire", "release"), "cta", True),
    Case("barrier.cta.arrive.aligned %r1, 64", (), ("release",), "cta"),
    Case("barrier.cluster.wait.aligned", (), ("acquire",), "cluster", True),
    Case("fence.sc.gpu", (), ("acquire", "release", "sc"), "gpu"),
    Case("fence.proxy.async.shared::cta", (), ("proxy",)),
    Case(
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%r1], %r2",
        (("read", "shared", 8, "generic"),),
        ("acquire",),
        "cta",
        True,
        "mbarrier",
    ),
    Case(
        "mbarrier.test_wait.shared.b64 p, [bar], %rd1",
        (("read", "shared", 8, "generic"),),
        ("acquire",),
        "cta",
        completion="mbarrier",
    ),
    Case(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], %r2, [%r3]",
        (("read", "global", 0, "async"), ("write", "shared", 0, "async"), ("rmw", "shared", 8, "generic")),
        completion="mbarrier",
    ),
    Case(
        "cp.async.cg.shared.global [%r1], [%rd1], 16",
        (("write", "shared", 16, "generic"), ("read", "global", 16, "generic")),
        completion="async-group",
    ),
    Case("add.u32 %r1, %r2, 3"),
]


@pytest.mark.parametrize("case", CASES, ids=[case.text.split()[0] for case in CASES])
def test_event(case: Case) -> None:
    event = event_of(case.text)
    accesses = tuple((a.access, a.space, a.total_bytes, a.proxy) for a in event.accesses)
    assert accesses == case.accesses
    semantics = (event.orders, event.scope, event.suspends, event.completion)
    assert semantics == (case.orders, case.scope, case.suspends, case.completion)
    assert all(access.address is not None for access in event.accesses)


def test_every_instruction_of_the_corpus_has_an_event() -> None:
    """A recorder can go through any module: each access has an address operand, each operand a role."""
    texts = [line.rsplit(" | ", 1)[-1] for line in _CORPUS.read_text().splitlines() if not line.startswith("#")]
    events = [event_of(text) for text in texts]
    assert len(events) > 300
    assert all(access.address is not None for event in events for access in event.accesses)
    assert {order for event in events for order in event.orders} == {"acquire", "release", "sc", "proxy"}
