"""What only matters while a cp.async is in flight is left out of the log where none can be: instrument/record/seals.py."""

from __future__ import annotations

import numpy as np
import pytest

import consan
from consan.instrument import effects
from consan.instrument.record import record, seals
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

COPY = "cp.async.ca.shared.global [%r1], [%rd1], 4;"
KERNEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{{
.reg .pred %p<3>; .reg .b32 %r<6>; .reg .b64 %rd<4>;
.shared .align 16 .b8 tile[512];
ld.param.u64 %rd1, [p];
mov.u32 %r2, %tid.x; mov.u32 %r1, tile; mad.lo.u32 %r1, %r2, 4, %r1; mul.wide.u32 %rd2, %r2, 4; add.u64 %rd1, %rd1, %rd2;
setp.lt.u32 %p1, %r2, 32;
{body}
ret;
}}
"""
COMMIT, WAIT, BARRIER, WRITE = "cp.async.commit_group;", "cp.async.wait_group 0;", "bar.sync 0;", "st.global.u32 [%rd1], %r2;"
SEALED = {
    "waited and met": [COPY, COMMIT, WAIT, BARRIER, WRITE],
    "wait_all": [COPY, "cp.async.wait_all;", BARRIER, WRITE],
    "a path without a copy": ["@%p1 bra L;", COPY, COMMIT, "L:", WAIT, BARRIER, WRITE],
    "a loop": ["L:", COPY, COMMIT, "@%p1 bra L;", WAIT, BARRIER, WRITE],
}
OPEN = {
    "not committed": [COPY, WAIT, BARRIER, WRITE],
    "not all waited": [COPY, COMMIT, "cp.async.wait_group 1;", BARRIER, WRITE],
    "not met": [COPY, COMMIT, WAIT, WRITE],
    "guarded wait": [COPY, COMMIT, "@%p1 cp.async.wait_group 0;", BARRIER, WRITE],
    "some threads meet": [COPY, COMMIT, WAIT, "bar.sync 1, 64;", WRITE],
    "guarded barrier": [COPY, COMMIT, WAIT, "@%p1 bar.sync 0;", WRITE],
    "a copy behind": [COPY, COMMIT, WAIT, BARRIER, WRITE, COPY, "cp.async.wait_all;"],
    "round again": ["L:", COPY, COMMIT, WAIT, BARRIER, WRITE, "@%p1 bra L;"],
    "a write before": [WRITE, COPY, COMMIT, WAIT, BARRIER],
    "in flight at the end": [COPY, COMMIT, "@%p1 ret;", WAIT, BARRIER, WRITE],
    "past the seal": [COPY, COMMIT, "@%p1 bra L;", WAIT, BARRIER, "L:", WRITE, "cp.async.wait_all;"],
}


def _events(body: list[str], **how: bool) -> list[effects.Effect]:
    done = record(KERNEL.format(body="\n".join(body)), **how)
    return [event for template in done.blocks.templates for event in template.events]


@pytest.mark.parametrize("name", SEALED)
def test_sources_and_writes_are_left_out(name: str) -> None:
    events = _events(SEALED[name])
    assert effects.GlobalWrite not in set(map(type, events))
    assert [event.seal for event in events if isinstance(event, effects.CtaBarrier)] == [True]


@pytest.mark.parametrize("name", OPEN)
def test_they_are_recorded_where_the_text_does_not_show_it(name: str) -> None:
    events = _events(OPEN[name])
    assert effects.GlobalWrite in set(map(type, events))
    assert not any(event.seal for event in events if isinstance(event, effects.CtaBarrier))


def test_the_templates_do_not_depend_on_the_marks_of_waiting() -> None:
    one, other = (record(KERNEL.format(body="\n".join(SEALED["a loop"])), leaves=leaves) for leaves in (False, True))
    assert one.blocks.templates == other.blocks.templates
    assert one.ptx != other.ptx


def _run(body: list[str], threads: int = 64, global_memory: str = "off") -> consan.Report:
    session = Session(SessionOptions(device="cpu", engine="record", global_memory=global_memory), private=True)
    prepared, data = session.prepare(KERNEL.format(body="\n".join(body))), np.arange(threads, dtype=np.uint32)
    address = session.backend.alloc(data.nbytes)
    session.backend.write(address, data)
    session.launch(prepared, "k", (1, 1, 1), (threads, 1, 1), [address.to_bytes(8, "little")])
    return session.report()


def test_a_sealed_kernel_is_clean() -> None:
    assert _run(SEALED["a loop"][1:3] + SEALED["waited and met"][2:]).verdict == "clean"


@pytest.mark.parametrize(
    "others",
    [
        # The other warp comes to the same rounds at barriers of its own: it may have copies in flight when the first warp writes.
        [COPY, COMMIT, BARRIER, WAIT, BARRIER, "ret;"],
        [BARRIER, COPY, COMMIT, WAIT, BARRIER, "ret;"],
    ],
)
def test_threads_that_meet_in_another_way_make_the_run_incomplete(others: list[str]) -> None:
    first = [COPY, COMMIT, WAIT, BARRIER, WRITE, BARRIER, "ret;"]
    report = _run(["@%p1 bra M;", *others, "M:", *first])
    assert report.verdict == "incomplete"
    assert "the sources of cp.async were not checked" in " ".join(report.incomplete)


def test_where_global_memory_is_checked_no_source_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other CTAs may overwrite it: what the text shows of one thread proves nothing."""
    racy = [COPY, COMMIT, WRITE, WAIT]
    assert {each.kind for each in _run(racy, global_memory="auto").findings} == {"missing-wait"}
    monkeypatch.setattr(seals, "seals_of", lambda plan, graph: frozenset({-1}))
    assert {each.kind for each in _run(racy, global_memory="auto").findings} == {"missing-wait"}
