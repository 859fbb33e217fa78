"""Records of the device to findings: who is (1), what an operation's bytes and phase are, and words for every reason."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from consan.instrument.abi.bits import STATE
from consan.instrument.abi.events import FINDING, TYPES, records_of
from consan.instrument.abi.records import dtype
from consan.instrument.abi.sizes import CLUSTER_BARRIER
from consan.instrument.findings import FindingFlags, Hazard, Kind, Operation, Reason
from consan.instrument.sites import Site
from consan.reports.decoding.decode import decode
from consan.reports.model import AsyncInfo, Finding
from consan.reports.records.finding_records import ModuleSites
from consan.reports.records.roles import action_of, role_of_site
from consan.reports.waiting.waiters import Waiter, deadlock_of
from consan.reports.words.wording import KINDS

SITES = [
    ("read", "ld.shared.f32", "load"),
    ("write", "st.shared.f32", "store"),
    ("write", "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", "bulk"),
    ("read", "cp.async.bulk.global.shared::cta.bulk_group", "bulk"),
    ("read", "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", "wgmma"),
    ("none", "mbarrier.init.shared.b64", "mbarrier"),
    ("none", "mbarrier.arrive.expect_tx.shared.b64", "mbarrier"),
    ("none", "cp.async.mbarrier.arrive.noinc.shared.b64", "mbarrier"),
    ("write", "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32", "bulk"),
    ("write", "cp.async.cg.shared.global", "cp.async"),
]
READ, WRITE, LOAD, STORE, WGMMA, INIT, ARRIVE, COPIES, STORE_ASYNC, COPY = range(1, len(SITES) + 1)
MODULE = ModuleSites([Site(i, "k", op, family, access, "shared", 4, i, op) for i, (access, op, family) in enumerate(SITES, 1)], ("k",))


def _put(record: Any, fields: dict[str, Any]) -> None:
    """Set the fields that a record or the records in it have."""
    for name in record.dtype.names:
        if record.dtype[name].names is not None:
            _put(record[name], fields)
        elif name in fields:
            record[name] = fields.pop(name)


def stored(kind: Kind, **fields: Any) -> Any:
    """A FINDING with these fields, of all findings or of its type."""
    finding, own = np.zeros(1, dtype(FINDING)), np.zeros(1, dtype(TYPES[kind]))
    _put(finding["event"], left := {"valid": 1, "kind": kind, "ntid": (128, 1, 1), **fields})
    if own.dtype.names:
        _put(own, left)
        finding["words"][0] = np.frombuffer(own.tobytes().ljust(finding["words"].nbytes, b"\0"), "<u8")
    assert not left, f"{kind.name} has no {', '.join(left)}"
    return finding


def found(kind: Kind, reason: Reason = Reason.NONE, **fields: Any) -> Finding:
    """The finding of one record; threads 64 (own) and 0 of one CTA unless given."""
    given = {"thread": 64, "offset": 256, "bytes": 4, "shared_bytes": 1024, **fields}
    (finding,) = decode(records_of(stored(kind, reason=reason, **given), None), {0: MODULE})
    return finding


def sides(finding: Finding) -> list[tuple[str, str]]:
    return [(access.op.split(".")[0], access.proxy) for access in finding.accesses]


def state(phase: int, pending: int, tx: int) -> int:
    return STATE.pack({"phase": phase, "pending": pending, "tx": tx})


IN_FLIGHT = {"site": READ, "other_site": LOAD, "operation": Operation.BULK_LOAD, "place": 513, "phase": 3, "expected": 1}


def test_a_load_that_was_not_waited_for() -> None:
    finding = found(Kind.MISSING_WAIT, Reason.NOT_WAITED, hazard=Hazard.RAW, **IN_FLIGHT, state=state(7, 1, -64))
    assert sides(finding) == [("cp", "async"), ("ld", "generic")]
    assert finding.accesses[0].asynchronous == AsyncInfo("bulk load", barrier=512, phase=3)
    assert finding.barrier == {"offset": 512, "phase": 3, "parity": 1, "expected": 1}
    assert "phase 3 of the mbarrier at shared offset 512" in finding.missing
    assert "mbarrier.try_wait.parity (parity 1)" in finding.fix


def test_the_operation_is_first_also_where_the_access_came_first() -> None:
    fields = {**IN_FLIGHT, "site": LOAD, "other_site": READ, "operation": 0, "own_operation": Operation.BULK_LOAD}
    finding = found(Kind.MISSING_WAIT, Reason.NOT_WAITED, hazard=Hazard.WAR, **fields)
    assert sides(finding) == [("cp", "async"), ("ld", "generic")]
    assert finding.accesses[0].asynchronous == AsyncInfo("bulk load", barrier=512, phase=3)


@pytest.mark.parametrize("seen_first", ["access", "operation"])
def test_a_stage_refilled_too_early_reads_the_same_from_both_sides(seen_first: str) -> None:
    own, other = (LOAD, READ) if seen_first == "access" else (READ, LOAD)
    side = "own_operation" if seen_first == "access" else "operation"
    finding = found(Kind.DATA_RACE, Reason.NO_BARRIER, hazard=Hazard.WAR, site=own, other_site=other, **{side: Operation.BULK_LOAD})
    assert sides(finding) == [("ld", "generic"), ("cp", "async")]
    assert (finding.hazard, finding.severity) == ("WAR", "error")
    assert "empty mbarrier" in finding.fix


def test_a_refill_of_what_was_written_is_a_waw() -> None:
    finding = found(Kind.DATA_RACE, Reason.NO_BARRIER, hazard=Hazard.WAR, site=WRITE, other_site=LOAD, operation=Operation.BULK_LOAD)
    assert finding.hazard == "WAW"


def test_a_lane_that_issues_without_a_warp_barrier_is_an_error() -> None:
    fields = {"site": STORE, "other_site": WRITE, "own_operation": Operation.BULK_STORE, "thread": 1}
    assert found(Kind.DATA_RACE, Reason.NO_WARP_SYNC, hazard=Hazard.RAW, **fields).severity == "error"
    assert found(Kind.DATA_RACE, Reason.NO_BARRIER, hazard=Hazard.RAW, **{**fields, "thread": 64}).severity == "error"


def test_groups_belong_to_the_operation_in_flight() -> None:
    fields = {"site": LOAD, "own_operation": Operation.BULK_LOAD, "other_site": WGMMA, "operation": Operation.WGMMA}
    finding = found(Kind.MISSING_WAIT, Reason.NOT_WAITED, hazard=Hazard.WAR, group=2, commits=5, **fields)
    assert [access.asynchronous for access in finding.accesses] == [AsyncInfo("wgmma", group=2), AsyncInfo("bulk load")]
    assert "wgmma.wait_group.sync.aligned 2" in finding.fix


def test_an_operation_alone() -> None:
    fields = {"site": STORE, "own_operation": Operation.BULK_STORE, "group": 1, "bytes": 512}
    finding = found(Kind.LIFETIME, Reason.EXIT, **fields)
    (access,) = finding.accesses
    assert (access.role, access.asynchronous, access.bytes) == ("bulk store", AsyncInfo("bulk store", group=1), (256, 768))
    assert "can still be reading shared memory when its CTA exits" in finding.message
    unwritten = found(Kind.UNINITIALIZED_READ, site=WGMMA, own_operation=Operation.WGMMA, bytes=16)
    assert "the operand read at PTX line 5 reads 16 bytes at offset 256 of shared memory that nothing" in unwritten.message
    outside = found(Kind.OUT_OF_BOUNDS, site=LOAD, offset=1000, bytes=256)
    assert "the bulk load at PTX line 3 touches 256 bytes at offset 1000" in outside.message
    assert "the size of the copy" in outside.fix


def test_an_mbarrier_and_what_it_holds() -> None:
    fields = {"site": ARRIVE, "other_site": INIT, "place": 9, "phase": 4, "expected": 2, "state": state(4, 1, -3)}
    finding = found(Kind.BARRIER_MISUSE, Reason.TOO_MANY_ARRIVALS, **fields)
    assert finding.barrier == {"offset": 8, "phase": 4, "parity": 0, "expected": 2, "pending": 1, "tx": -3}
    assert [access.role for access in finding.accesses] == ["initialisation", "arrival"]
    assert "its count, set at PTX line 6, is 2" in finding.message
    unknown = found(Kind.BARRIER_MISUSE, Reason.NOT_INITIALISED, site=ARRIVE, place=9)
    assert unknown.barrier == {"offset": 8}


@pytest.mark.parametrize(
    ("site", "role", "action"),
    [
        (COPIES, "arrival", None),
        (STORE_ASYNC, "asynchronous store", "st.async"),
        (COPY, "asynchronous copy", "cp.async"),
        (STORE, "bulk store", "bulk store"),
    ],
)
def test_the_role_of_a_site_that_the_record_says_nothing_of(site: int, role: str, action: str | None) -> None:
    (_, own) = found(Kind.BARRIER_MISUSE, Reason.BYTES_USED, site=site, other_site=INIT, place=1).accesses
    assert (own.role, own.asynchronous and own.asynchronous.kind) == (role, action)


@pytest.mark.parametrize(
    ("reason", "severity", "words"),
    [
        (Reason.READ_WAIT_ONLY, "error", "only its source has been waited for"),
        (Reason.NOT_WAITED, "error", "may not have written yet"),
        (Reason.NOT_COMMITTED, "error", "it was not committed"),
        (Reason.WAITED_NO_BARRIER, "error", "nothing orders that wait"),
        (Reason.OTHER_LANES, "error", "another lane of the warp"),
        (Reason.OTHER_ISSUER, "error", "a wait by another thread does not cover it"),
    ],
)
def test_the_result_of_a_bulk_store_in_global_memory(reason: Reason, severity: str, words: str) -> None:
    fields = {"site": READ, "other_site": STORE, "operation": Operation.BULK_STORE, "group": 2, "commits": 5}
    flags = FindingFlags.OTHER_ASYNC | FindingFlags.GLOBAL
    finding = found(Kind.MISSING_WAIT, reason, hazard=Hazard.RAW, **fields, flags=flags, address=4096, bytes=4)
    assert sides(finding) == [("cp", "async"), ("ld", "generic")]
    assert finding.severity == severity
    assert words in finding.message
    assert finding.buffer is None
    assert [(access.space, access.bytes) for access in finding.accesses] == [("global", (4096, 4100))] * 2
    assert ".read" not in finding.fix.replace("without .read", "").replace("the .read form", "")


@pytest.mark.parametrize(
    ("reason", "severity", "point"),
    [(Reason.WRITER_NO_FENCE, "note", "D2"), (Reason.READ_NO_FENCE, "warning", "D1"), (Reason.COPY_NO_FENCE, "warning", "")],
)
def test_findings_of_the_stricter_policy_name_it(reason: Reason, severity: str, point: str) -> None:
    fields = {"site": WGMMA, "other_site": READ, "own_operation": Operation.WGMMA}
    finding = found(Kind.MISSING_PROXY_FENCE, reason, hazard=Hazard.RAW, **fields)
    assert (finding.severity, finding.policy) == (severity, "isa")
    assert "policy isa" in finding.missing
    assert point in finding.missing
    assert found(Kind.MISSING_PROXY_FENCE, Reason.NO_PROXY_FENCE, hazard=Hazard.RAW, **fields).policy == "default"


def test_every_reason_that_the_runtime_gives_has_words_of_its_own() -> None:
    """In the kinds that it is given for there is a row for it; a reason without one would read like the general case."""
    folder = files("consan.instrument.runtime")
    text = "".join(entry.read_text() for entry in folder.iterdir() if entry.name.endswith(".cuh"))
    used = {Reason[name] for name in re.findall(r"\bREASON_([A-Z_]+)\b", text)} - {Reason.NONE}
    assert len(used) > 20
    situations = [situation for kind in KINDS.values() for situation in kind.situations]
    names = {name.partition("/")[0].partition(":")[0].removeprefix("global-") for name in situations}
    assert {reason.situation for reason in used} <= names


def test_a_copy_at_exit_is_told_unless_a_missing_wait_for_it_is() -> None:
    copy = stored(Kind.LIFETIME, reason=Reason.EXIT, site=COPY)
    wait = stored(Kind.MISSING_WAIT, reason=Reason.NOT_WAITED, site=READ, other_site=COPY, bytes=4)
    records = np.concatenate([copy, wait])
    (alone,) = decode(records_of(records[:1], None), {0: MODULE})
    assert (alone.kind, alone.accesses[0].role, alone.buffer) == ("lifetime", "asynchronous copy", None)
    assert "cp.async.wait_all" in alone.fix
    assert [finding.kind for finding in decode(records_of(records, None), {0: MODULE})] == ["missing-wait"]


@pytest.mark.parametrize("second_leads", [False, True])
def test_waiters_of_several_ctas_whose_equal_records_are_one(second_leads: bool) -> None:
    """The first CTA says who waits first, the second was quicker with the rest; unless it has a deadlock of its own."""
    kinds = (Kind.DEADLOCK, Kind.WAITER, Kind.DEADLOCK if second_leads else Kind.WAITER)
    made = zip(kinds, (0, 1, 1), (INIT, ARRIVE, COPIES), strict=True)
    records = np.concatenate([stored(kind, ctaid=(cta, 0, 0), site=site, threads=32) for kind, cta, site in made])
    first = decode(records_of(records, None), {0: MODULE})[0]
    told = [waiter["ptx"].split(".")[1] for waiter in first.waiters]
    assert told == (["init"] if second_leads else ["init", "arrive", "async"])


@pytest.mark.parametrize(("other", "severity"), [(WRITE, "note"), (READ, "warning")])
def test_stores_of_one_value_are_a_note_if_one_instruction_makes_them(other: int, severity: str) -> None:
    finding = found(Kind.DATA_RACE, Reason.NO_BARRIER, hazard=Hazard.WAW, site=WRITE, other_site=other, flags=FindingFlags.SAME_VALUE)
    assert finding.severity == severity
    assert "the same value into the same bytes" in finding.message


def test_other_values_of_one_instruction_are_an_error() -> None:
    assert found(Kind.DATA_RACE, Reason.NO_BARRIER, hazard=Hazard.WAW, site=WRITE, other_site=WRITE).severity == "error"


def test_a_waiter_says_what_it_waits_for() -> None:
    at_barrier = found(Kind.DEADLOCK, site=INIT, threads=64, lanes=0xFF, number=3, arrived=32, expected=96).waiters[0]
    known = {"block": [0, 0, 0], "warp": 2, "lanes": 0xFF, "threads": 64, "why": "barrier", "barrier": 3, "arrived": 32, "expected": 96}
    assert {name: at_barrier.get(name) for name in known} == known
    at_mbarrier = found(Kind.DEADLOCK, site=INIT, place=9, phase=3, state=state(7, 2, -8)).waiters[0]
    known = {"why": "mbarrier", "mbarrier": 8, "phase": 3, "parity": 1, "pending": 2, "tx": -8, "barrier": None}
    assert {name: at_mbarrier.get(name) for name in known} == known
    in_cluster = found(Kind.DEADLOCK, site=INIT, number=CLUSTER_BARRIER, cta_threads=128, cluster=(2, 1, 1), thread=130).waiters[0]
    assert (in_cluster["why"], in_cluster["cluster_rank"], in_cluster["block"], in_cluster["warp"]) == ("cluster-barrier", 1, [1, 0, 0], 0)


def test_a_waiter_of_the_virtual_machine_makes_the_same_deadlock() -> None:
    record = found(Kind.DEADLOCK, number=3, arrived=0, expected=0)
    machine = deadlock_of("k", [Waiter(block=(0, 0, 0), warp=2, lanes=0, why="barrier", threads=0, barrier=3, arrived=0, expected=0)])
    assert record.waiters == machine.waiters
    assert (record.kind, record.message, record.fix) == (machine.kind, machine.message, machine.fix)


@pytest.mark.parametrize(("opcode", "role"), [("st.bulk.weak.shared::cta", "write"), ("cp.async.bulk.shared::cluster.global", "bulk load")])
def test_st_bulk_is_a_store_of_its_thread(opcode: str, role: str) -> None:
    site = Site(1, "k", opcode, "bulk", "write", "shared", 4, 1, opcode)
    assert role_of_site(site, action_of(site)) == role
