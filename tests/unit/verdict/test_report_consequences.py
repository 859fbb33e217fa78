"""Which findings follow from another one: what comes first, what the text, the page and the JSON say, and what stays as it was."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from planted import plant

from consan.reports import render
from consan.reports.catalogue.situations import NEVER_FREED
from consan.reports.formats import json_format
from consan.reports.model import CULPRIT, Access, AsyncInfo, Buffer, Finding, FixStep, KernelSummary, Report, Suppressed, VerifiedFix
from consan.reports.racing_value import RacingValue, UsedAt
from consan.reports.verdict.conclusion import assemble, exit_status
from consan.reports.verdict.speaking import shared
from consan.reports.verdict.speaking.precedence import roots
from consan.reports.verdict.speaking.relations import BELONGS
from consan.reports.verdict.speaking.terms import Share, Which


def at(role: str, line: int, op: str = "st.shared.u32", **more: Any) -> Access:
    return Access(role, op, file="k.cu", line=line, column=5, ptx_line=10 * line, **more)


FULL = {"offset": 0, "name": "full"}
MISUSE = Finding(
    "barrier-misuse",
    "k",
    situation="too-many-arrivals",
    barrier=FULL,
    accesses=(at("initialisation", 8), at("arrival", 13)),
    fix="one arrives",
)
WAIT = at(CULPRIT, 15, "mbarrier.try_wait.parity.shared::cta.b64", name="full")
RACE = Finding(
    "data-race", "k", message="a race", missing="a barrier", fix="wait", count=99, accesses=(at("write", 11), at("read", 16), WAIT)
)
LOADED = AsyncInfo("bulk load", barrier=0, phase=0, barrier_name="full")
COPY = at("bulk load", 10, "cp.async.bulk", asynchronous=LOADED)
UNAWAITED = Finding("missing-wait", "k", barrier=FULL, accesses=(COPY, at("read", 15, "ld.shared.u32")))
AT_EXIT = Finding("lifetime", "k", barrier=FULL, accesses=(COPY,), count=5)
DISAGREE = Finding("barrier-misuse", "k", situation="counts-disagree", accesses=(at("barrier", 6, "bar.sync"),))
STUCK = Finding("deadlock", "k", waiters=({"barrier": 1, "ptx_line": 60, "why": "barrier"},), count=3)
STUCK_AT_FULL = Finding("deadlock", "k", waiters=({"mbarrier": 0, "why": "mbarrier"},))
GROUPS = at(CULPRIT, 18, "cp.async.wait_group")
EARLY = Finding("missing-wait", "k", fix="wait for 1", accesses=(at("cp.async", 22), at("read", 20), GROUPS), count=9)
FIRST = replace(EARLY, accesses=(at("cp.async", 13), at("read", 20), GROUPS), count=4)
INIT = Finding(
    "barrier-misuse",
    "k",
    situation="init-not-published",
    barrier=FULL,
    accesses=(at("initialisation", 10), at("arrival", 18)),
    fix="sync",
    count=3,
)
INIT_TOO = replace(INIT, accesses=(at("initialisation", 10), at("wait", 20)), count=2)
HERE, THERE = {"block": (0, 0, 0)}, {"block": (1, 0, 0)}
FLAG = Finding("data-race", "k", situation="narrow-scope", accesses=(at("write", 12, **THERE), at("read", 15, **HERE)))
EDGE = Finding("scope", "k", situation="arrive-scope", accesses=(at("write", 11, **THERE), at("read", 16, **HERE)), count=9)
STORED = replace(FLAG, kind="scope", situation="store-scope")
SHARED_ID = Finding("barrier-misuse", "k", situation="shared-id", accesses=(at("barrier", 10, "bar.sync"), at("barrier", 8, "bar.arrive")))
IN_ROUNDS = replace(RACE, accesses=(*RACE.pair, at(CULPRIT, 10, "bar.sync")))
BETWEEN_CTAS = Finding("data-race", "k", situation="cluster", accesses=(at("write", 8, **THERE), at("read", 11, **HERE)))
NOT_STARTED = Finding("lifetime", "k", situation="not-started", accesses=(at("read", 11, **HERE),))
UPDATE = Finding("global-race", "k", situation="no-synchronisation@update", accesses=(at("read", 3), at("write", 4)), fix="add it")
UPDATE_TOO = replace(UPDATE, kind="data-race", situation="no-barrier@update")
SAME_SUM = replace(UPDATE, severity="warning", situation="replicated", accesses=(at("write", 4), at("write", 4)))
WEAK_LOCK = Finding(
    "global-race", "k", situation="weak-access", accesses=(at("write", 9, **THERE), at("read", 5, "atom.global.cas.b32", **HERE))
)
WEAK_FLAG = replace(WEAK_LOCK, accesses=(WEAK_LOCK.pair[0], at("read", 5, "ld.volatile.u32", **HERE)))
AT_COUNTER = Finding(
    "global-race", "k", situation="no-acquire", fix="a fence", count=9, accesses=(at("write", 7, block=(2, 0, 0)), at("read", 7, **HERE))
)
SUMS = Buffer("sums", "shared", 0, 8)
PRIVATE = Finding("data-race", "k", situation="no-warp-sync@one-store", fix="own", buffer=SUMS, accesses=(at("write", 5), at("write", 5)))
IN_STEP = Finding("missing-order", "k", situation="no-barrier", fix="a barrier", buffer=SUMS, accesses=(at("write", 5), at("read", 6)))
IN_STEP_TOO = replace(IN_STEP, buffer=replace(SUMS, offset=4, bytes=4), accesses=(at("write", 5), at("read", 7)))
PRIVATE_TOO = replace(PRIVATE, accesses=(at("write", 6), at("write", 6)))
CLEARED = Finding("data-race", "k", situation="no-warp-sync", fix="a fence", count=9, accesses=(at("write", 4), at("write", 5)))
LAPPED = Finding("missing-wait", "k", situation="not-waited", fix="a fence", barrier=FULL, hazard="WAW", accesses=(COPY, COPY))
PRODUCT = at("wgmma accumulator", 20, "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16")
TOUCHED = Finding("register-hazard", "k", situation="touched-before-wait", accesses=(PRODUCT, at("read", 24, "add.f32")))
PRODUCT_AT_EXIT = Finding("lifetime", "k", accesses=(replace(PRODUCT, role="operand read"),))
COPY_OF_PRODUCT_AT_EXIT = replace(PRODUCT_AT_EXIT, fix="a fence", count=9, accesses=(replace(PRODUCT_AT_EXIT.accesses[0], ptx_line=777),))
UNHEARD = replace(UNAWAITED, situation="not-waited", hazard="RAW")
LAP = replace(MISUSE, situation="phase-lapped", fix="a fence", count=9)
LAP_OF_RING = replace(LAP, accesses=(*LAP.accesses, at(CULPRIT, 12, name="empty")))
OVERWRITES = Finding("missing-wait", "k", situation="not-waited", hazard="WAR", barrier=FULL, count=10, accesses=(at("read", 7), COPY))
STALE = Finding("missing-wait", "k", situation="not-waited", hazard="RAW", barrier=FULL, accesses=(COPY, at("read", 7), at(CULPRIT, 6)))
LATE = Finding("global-race", "k", situation="released-before", accesses=(at("write", 4, **THERE), at("read", 6, **HERE)))
LATE_TOO = Finding("global-race", "k", situation="no-release", fix="a fence", count=9, accesses=(LATE.accesses[0], at("write", 4, **HERE)))

REFILL = Finding("data-race", "k", situation="refilled-too-early", hazard="WAR", accesses=(at("read", 7, **HERE), replace(COPY, **THERE)))
UNANNOUNCED = replace(MISUSE, situation="bytes-not-announced", fix="a fence", count=9, accesses=(at("arrival", 13), COPY))

TOO_FEW = replace(UNANNOUNCED, situation="bytes-too-few", count=1, accesses=(at("arrival", 13, **HERE), replace(COPY, **THERE)))
REFILL_OF_UNHEARD = replace(REFILL, fix="a fence", count=9, accesses=(UNHEARD.pair[1], COPY))
TENSOR = at("tcgen05.mma", 20, "tcgen05.mma.cta_group::1.kind::f16")
UNCOMMITTED = Finding("missing-wait", "k", situation="tensor-not-committed", fix="commit", accesses=(TENSOR, at("tcgen05.ld", 27)))
UNCOMMITTED_TOO = replace(UNCOMMITTED, accesses=(TENSOR, at("tcgen05.dealloc", 30)), count=2)
TENSOR_AT_EXIT = Finding("lifetime", "k", situation="exit", accesses=(TENSOR,))
UNSEEN = replace(UNCOMMITTED, situation="tensor-not-waited", hazard="RAW")
FREED_UNSEEN = replace(UNSEEN, fix="a fence", count=9, hazard="WAW", accesses=(TENSOR, at("tcgen05.dealloc", 30)))
FREED_EARLY = Finding(
    "data-race", "k", situation="tensor-freed-early", hazard="WAR", accesses=(at("tcgen05.ld", 27), at("tcgen05.dealloc", 30))
)
FREED_UNWAITED = replace(FREED_UNSEEN, situation="tensor-waited-no-barrier")
SHARED_BY_COUNTS = replace(SHARED_ID, fix="a fence", count=9)
UNPUBLISHED = replace(INIT, situation="init-not-published-to-peer", accesses=(at("initialisation", 10), at("read", 11, **HERE)))
OVERTAKEN = replace(REFILL_OF_UNHEARD, fix="free it", count=1)
READ_OF_REFILL = replace(UNHEARD, fix="a fence", count=9, cause=NEVER_FREED)

INDEX = replace(RACE, accesses=RACE.pair, value=RacingValue("address", (UsedAt("k.cu", 17, 170),), (170,)))
AT_INDEX = Finding("data-race", "k", situation="same-site@one-store", fix="a fence", count=100, accesses=(at("write", 17), at("write", 17)))
UNFILLED = Finding("uninitialized-read", "k", situation="general", fix="a fence", count=9, accesses=(at("read", 7), at(CULPRIT, 5)))
OF_CTAS = Finding("global-race", "k", situation="no-synchronisation", accesses=(at("write", 8), at("read", 7)))
OF_ONE_CTA = Finding("data-race", "k", situation="no-barrier", fix="a fence", count=9, accesses=(at("read", 7), at("write", 8)))


def run(*findings: Finding) -> Report:
    return assemble(device="cpu", kernels=[KernelSummary("k", launches=1), KernelSummary("other", launches=1)], findings=findings)


FOLLOWING = {
    "a race through it": (MISUSE, RACE),
    "a deadlock at it": (MISUSE, STUCK_AT_FULL),
    "a missing wait for it": (MISUSE, UNAWAITED),
    "a deadlock at a named barrier": (DISAGREE, STUCK),
    "a copy at the exit": (UNAWAITED, AT_EXIT),
    "a product at the exit": (TOUCHED, PRODUCT_AT_EXIT),
    "a tcgen05 product at the exit": (UNCOMMITTED, TENSOR_AT_EXIT),
    "an edge by a flag": (FLAG, EDGE),
    "an edge by a flag that is released": (STORED, EDGE),
    "a race at a barrier whose rounds mix": (SHARED_ID, IN_ROUNDS),
    "a deadlock at a lapped mbarrier": (replace(LAP, fix="one arrives"), STUCK_AT_FULL),
}
MAY_FOLLOW = {
    "bytes that come before the receiver announces them": (REFILL, UNANNOUNCED),
    "a stage that is refilled early, as bytes are announced by nobody": (TOO_FEW, replace(REFILL, fix="a fence", count=99)),
    "a counter beside a lock": (WEAK_LOCK, AT_COUNTER),
    "another copy of an unrolled product at the exit": (TOUCHED, COPY_OF_PRODUCT_AT_EXIT),
    "a write behind its release": (LATE, LATE_TOO),
    "data beside a flag": (WEAK_FLAG, replace(AT_COUNTER, situation="no-synchronisation", accesses=BETWEEN_CTAS.accesses)),
    "a race in lost rounds of a barrier": (replace(MISUSE, situation="arrived-twice"), replace(RACE, fix="a fence")),
    "another race of a private value": (PRIVATE, CLEARED),
    "a store at an index that was read too early": (INDEX, AT_INDEX),
    "a read of what a store has left out": (PRIVATE, UNFILLED),
    "the same within a CTA": (OF_CTAS, OF_ONE_CTA),
    "copies whose mbarrier is lapped": (LAPPED, LAP),
    "a lap of an mbarrier that nobody waits for before a read": (UNHEARD, LAP),
    "a lap where a copy is refilled": (replace(UNHEARD, situation="refilled"), LAP),
    "a lap that a missing wait causes": (UNAWAITED, LAP),
    "a lap of the other mbarrier of a ring": (replace(UNHEARD, barrier={"offset": 8, "name": "empty[1]"}), LAP_OF_RING),
    "a copy that comes too early because its reader does not wait": (UNHEARD, REFILL_OF_UNHEARD),
    "a copy over what is read, and over another one": (OVERWRITES, LAPPED),
    "a copy that a read does not wait for, and over another one": (STALE, replace(LAPPED, count=10)),
    "a product whose result is read unseen, and freed": (UNSEEN, FREED_UNSEEN),
    "rounds that mix, as counts disagree": (DISAGREE, SHARED_BY_COUNTS),
    "a race at barriers whose counts disagree": (DISAGREE, OF_ONE_CTA),
}
PUBLISHED = {
    f"between CTAs and within one: {name}": (
        found := Finding("global-race", "k", situation=name, fix="a wide fence", accesses=(at("write", 10), at("read", 27))),
        replace(found, kind="data-race", fix="a narrow fence", count=99),
        "The repair of error 1, which is for several CTAs",
    )
    for name in ("no-release", "no-acquire", "no-release-no-acquire", "not-coherent")
}
ONE_CAUSE = {
    **PUBLISHED,
    "one wait": (EARLY, FIRST, "one repair for error 1 and this one: wait for 1"),
    "one commit": (UNCOMMITTED, UNCOMMITTED_TOO, "one repair for error 1 and this one: commit"),
    "one cluster barrier": (BETWEEN_CTAS, NOT_STARTED, "the cluster barrier that repairs error 1 comes before k.cu:11"),
    "updates by threads of one CTA and of several": (UPDATE, UPDATE_TOO, "one repair for error 1 and this one: add it"),
    "updates that have lost the same": (UPDATE, SAME_SUM, "one repair for error 1 and this one: add it"),
    "volatile accesses of one variable": (IN_STEP, IN_STEP_TOO, "order all accesses of the variable of error 1: a barrier"),
    "two stores of private values": (PRIVATE, PRIVATE_TOO, "one repair for error 1 and this one: own"),
    "one cluster barrier behind an initialisation": (UNPUBLISHED, NOT_STARTED, "the cluster barrier that repairs error 1 comes before"),
    "one barrier before columns are freed": (FREED_EARLY, FREED_UNWAITED, "one repair for error 1 and this one"),
    "one hand-back of a stage": (OVERTAKEN, READ_OF_REFILL, "one repair for error 1 and this one"),
    "one initialisation": (INIT, INIT_TOO, "let the barrier that repairs error 1 come before k.cu:20 too"),
}


@pytest.mark.parametrize(("root", "finding"), FOLLOWING.values(), ids=FOLLOWING)
def test_what_follows_says_so_after_its_root(root: Finding, finding: Finding) -> None:
    report = run(finding, root)
    assert [each.kind for each in report.findings] == [root.kind, finding.kind]
    assert json_format.to_json(report)["findings"][1]["follows"] == 0
    assert "It follows from error 1." in render(report, "html")
    assert "epair error 1 first" in render(report, "html")
    text = render(report, "text")
    assert f"also: error[{finding.kind}]" in re.sub(r"\s+", " ", text)
    assert "1/1 ==" in text
    assert "2 errors, which have 1 cause" in text


@pytest.mark.parametrize(("root", "finding"), MAY_FOLLOW.values(), ids=MAY_FOLLOW)
def test_what_may_follow_comes_after_its_root_with_its_own_repair(root: Finding, finding: Finding) -> None:
    report = run(finding, root)
    assert [each.situation for each in report.findings] == [root.situation, finding.situation]
    page, text = render(report, "html"), render(report, "text")
    assert "It may follow from error 1." in page
    assert "epair error 1 first; if this one stays: a fence" in page
    assert f"may follow: error[{finding.kind}]" in re.sub(r"\s+", " ", text)
    assert "2 errors, which have 1 cause" in text


@pytest.mark.parametrize(("root", "finding", "repair"), ONE_CAUSE.values(), ids=ONE_CAUSE)
def test_findings_with_one_repair_say_so(root: Finding, finding: Finding, repair: str) -> None:
    report = run(finding, root)
    text = render(report, "html")
    assert "Its cause is that of error 1." in text
    assert repair[1:] in text


OTHERS = {
    "another mbarrier": (MISUSE, replace(RACE, accesses=(*RACE.pair, replace(WAIT, name="empty")))),
    "an element of an array": (
        replace(MISUSE, barrier={"offset": 0, "name": "full[1]"}), replace(RACE, accesses=(*RACE.pair, replace(WAIT, name="full"))),
    ),
    "another CTA of the cluster": (MISUSE, replace(UNAWAITED, barrier={**FULL, "cluster_rank": 1})),
    "another kernel": (MISUSE, replace(RACE, kernel="other")),
    "no culprit": (MISUSE, replace(RACE, accesses=RACE.pair)),
    "a misuse that breaks no phase": (replace(MISUSE, situation="waiters-pending"), RACE),
    "a lap of another mbarrier": (LAP, replace(UNHEARD, barrier={"offset": 64, "name": "other"})),
    "two copies over what is read": (OVERWRITES, replace(LAPPED, hazard="WAR", accesses=(at("read", 9), COPY))),
    "another phase": (UNAWAITED, replace(AT_EXIT, accesses=(replace(COPY, asynchronous=replace(LOADED, phase=1)),))),
    "another place": (DISAGREE, replace(STUCK, waiters=({"barrier": 2, "ptx_line": 70},))),
    "another repair": (EARLY, replace(FIRST, fix="wait for 0")),
    "a flag of other CTAs": (FLAG, replace(EDGE, accesses=(at("write", 11, block=(2, 0, 0)), at("read", 16, **HERE)))),
    "a flag of wide scope": (replace(FLAG, situation="cluster"), EDGE),
    "another named barrier": (SHARED_ID, RACE),
    "another product": (UNCOMMITTED, replace(TENSOR_AT_EXIT, accesses=(replace(TENSOR, ptx_line=1),))),
    "a copy that another read lets come": (UNHEARD, replace(REFILL_OF_UNHEARD, accesses=REFILL.accesses)),
    "another access to the CTA": (BETWEEN_CTAS, replace(NOT_STARTED, accesses=(at("read", 5, **HERE),))),
    "volatile accesses of another variable": (IN_STEP, replace(IN_STEP_TOO, buffer=replace(SUMS, name="other"))),
    "a flag without a release": (IN_STEP, replace(IN_STEP_TOO, situation="no-release")),
    "a counter beside a flag": (WEAK_FLAG, AT_COUNTER),
    "another variable": (PRIVATE, replace(PRIVATE_TOO, buffer=replace(SUMS, name="other"))),
    "a race of another store": (PRIVATE, replace(CLEARED, accesses=(at("write", 4), at("write", 7)))),
    "another write": (LATE, replace(LATE_TOO, accesses=(at("write", 5, **THERE), LATE_TOO.pair[1]))),
    "a suppressed root": (replace(MISUSE, suppressed=Suppressed("known", "k.cu")), RACE),
    "a store at another index": (INDEX, replace(AT_INDEX, accesses=(at("write", 18), at("write", 18)))),
    "a value that is no index": (replace(INDEX, value=RacingValue("store", (UsedAt("k.cu", 17, 170),))), AT_INDEX),
    "another place within a CTA": (OF_CTAS, replace(OF_ONE_CTA, accesses=(at("read", 7), at("write", 9)))),
    "a root that counts less": (replace(MISUSE, severity="warning"), RACE),
}  # fmt: skip


@pytest.mark.parametrize(("root", "finding"), OTHERS.values(), ids=OTHERS)
def test_nothing_is_said_where_it_is_not_certain(root: Finding, finding: Finding) -> None:
    assert not roots([root, finding])
    assert not roots([finding, root])


def test_what_follows_shows_no_culprit_of_its_own() -> None:
    text = render(run(RACE, MISUSE), "text")
    assert "also:" in text
    assert "culprit" not in text


FIX = VerifiedFix((FixStep("add", "bar.sync 0", "before", "", "k.cu", 14, 140, "__syncthreads()"),))
ELSEWHERE = FixStep("add", "bar.sync 0", "before", "", "k.cu", 19, 190, "__syncthreads()")
BOTH = VerifiedFix((*FIX.steps, ELSEWHERE))
ONE_REPAIR = [
    Finding("global-race", "k", fix="two fences", accesses=(at("write", 11), at(role, 11)), verified=BOTH) for role in ("read", "write")
]


@pytest.mark.parametrize(("fix", "shown"), [(FIX, 1), (VerifiedFix((*FIX.steps, ELSEWHERE)), 12)])
def test_findings_that_one_change_removes_are_one(fix: VerifiedFix, shown: int) -> None:
    """Twelve races for one missing barrier. A change at two places may be two repairs."""
    races = [
        Finding("data-race", "k", fix=f"before line {20 + each}", accesses=(at("write", 11), at("read", 20 + each)), verified=fix)
        for each in range(12)
    ]
    text = render(run(*races), "text")
    assert f"1/{shown} ==" in text
    assert ("and 8 more; the JSON report lists them all" in text) is (shown == 1)


def test_findings_with_one_fix_of_two_places_are_one() -> None:
    """Both sides of a flag, for a load and a store of the same data."""
    assert "1/1 ==" in render(run(*ONE_REPAIR), "text")


def test_a_chain_has_one_root() -> None:
    broken, unawaited, at_exit = run(AT_EXIT, UNAWAITED, MISUSE).findings
    assert {index: root for index, (root, _) in roots([broken, unawaited, at_exit]).items()} == {1: 0, 2: 0}


def test_of_findings_that_lead_to_each_other_one_is_the_root() -> None:
    """A store of private values in two variables: each race has the store of the other."""
    others = replace(PRIVATE, buffer=replace(SUMS, name="other"))
    assert {index: root for index, (root, _) in roots([PRIVATE, others]).items()} == {0: 1}


def test_every_relation_has_an_example() -> None:
    """And every case of one: some root leads to some finding."""
    examples = [*FOLLOWING.values(), *MAY_FOLLOW.values(), *((root, finding) for root, finding, _ in ONE_CAUSE.values())]
    examples.append((ONE_REPAIR[0], ONE_REPAIR[1]))
    left = [case for relation in BELONGS for case in relation.cases if not any(_is_of(case, *each) for each in examples)]
    assert left == []


def _is_of(case: tuple[Which, Which, Share], root: Finding, finding: Finding) -> bool:
    one, other, share = case
    return one.has(root) and other.has(finding) and share(root, finding)


def test_what_follows_comes_right_after_its_root() -> None:
    unrelated = replace(RACE, kernel="other", count=100)
    assert [each.kernel for each in run(STUCK, unrelated, DISAGREE).findings] == ["k", "k", "other"]


def test_no_finding_is_lost_and_the_judgement_is_the_same() -> None:
    report = run(RACE, MISUSE)
    assert (report.verdict, report.count("error"), exit_status(report), exit_status(report, strict=True)) == ("violations", 2, 66, 66)
    stored = json_format.to_json(report)
    jsonschema.validate(stored, json_format.schema())
    assert [(each["message"], each["fix"]) for each in stored["findings"]] == [("", "one arrives"), ("a race", "wait")]
    assert json_format.from_json(stored).findings == report.findings


def test_only_the_copy_of_a_read_is_refilled(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, shared, "for access in root.pair if access.asynchronous is not None}", "for access in root.pair[-1:]}")
    with pytest.raises(AssertionError):
        test_what_may_follow_comes_after_its_root_with_its_own_repair(STALE, replace(LAPPED, count=10))
